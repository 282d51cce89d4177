"""Vertex AI on this machine: a server on loopback that speaks the REST API that Google's clients use.

How it hangs together::

    server.LocalVertex      starts `python -m eagle_bench.local_vertex` and stops it, for the command line and tests
    settings.Settings       images -> engine commands, model ids -> folders, slots, token lifetime, faults
    app                     the routes
    tokens                  service account key, signed assertions in, short-lived tokens out, 401 for all else
    accounts                who may do what, acting as another account, quotas
    registry, resources     Model Garden deploy, endpoints, models
    deployments             waits for a machine, starts an engine, until it is healthy
    machines                slots (how many endpoints fit), turns (who may use the machine now)
    gateway                 an endpoint's traffic to its engine, chunk by chunk
    operations              long-running operations: get, wait, cancel
    jobs, job_runner        a submitted pipeline job, run by kfp.local in a process of its own
    processes, keeper       processes that end with the server, whatever ends the server
    buckets                 as much of Cloud Storage as a run needs
    faults, refusals        what goes wrong on order; errors as Google's APIs write them

State lies in `Settings.state_dir`: the key file, `logs/`, `jobs/JOB/` and `buckets/` (what jobs write to gs://).
Components, pipeline and clients don't know of it: `environment.client_environment` is all that points them here.
"""
