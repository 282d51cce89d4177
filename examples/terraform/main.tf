# What cloudbuild.yaml and the runs need in one project: docs/cloud-build.md explains each part.
#   terraform init && terraform apply -var project=my-project
# and for triggers, once the repository is connected to Cloud Build: -var github_owner=my-org -var torch_index_url=https://…

terraform {
  required_version = ">= 1.5"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.0, < 8.0"
    }
  }
}

provider "google" {
  project = var.project
  region  = var.location
}

locals {
  apis = toset([
    "aiplatform.googleapis.com",
    "artifactregistry.googleapis.com",
    "cloudbuild.googleapis.com",
    "cloudquotas.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "containeranalysis.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "secretmanager.googleapis.com",
    "storage.googleapis.com",
  ])
}

resource "google_project_service" "api" {
  for_each           = local.apis
  service            = each.value
  disable_on_destroy = false
}

# Repositories: images and templates that are released, and images of pull requests, which nobody deploys from.

resource "google_artifact_registry_repository" "images" {
  repository_id = "eagle-bench"
  location      = var.location
  format        = "DOCKER"
  description   = "Images of eagle-bench's components"
  depends_on    = [google_project_service.api]
}

resource "google_artifact_registry_repository" "pull_requests" {
  repository_id = "eagle-bench-pull-requests"
  location      = var.location
  format        = "DOCKER"
  description   = "Images that pull requests built; gone after a week"
  cleanup_policies {
    id     = "a-week"
    action = "DELETE"
    condition {
      older_than = "604800s"
    }
  }
  depends_on = [google_project_service.api]
}

resource "google_artifact_registry_repository" "templates" {
  repository_id = "eagle-bench-templates"
  location      = var.location
  format        = "KFP"
  description   = "Compiled pipelines of eagle-bench"
  depends_on    = [google_project_service.api]
}

# The bucket of pipeline_root: artifacts of runs, in the region of the runs.

resource "google_storage_bucket" "runs" {
  name                        = "${var.project}-eagle-bench"
  location                    = var.location
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  depends_on                  = [google_project_service.api]
}

# Accounts: one builds and publishes, one builds pull requests, one runs the pipelines.

resource "google_service_account" "build" {
  account_id   = "eagle-bench-build"
  display_name = "eagle-bench: builds and publishes"
  depends_on   = [google_project_service.api]
}

resource "google_service_account" "pull_requests" {
  account_id   = "eagle-bench-pull-requests"
  display_name = "eagle-bench: builds pull requests"
  depends_on   = [google_project_service.api]
}

resource "google_service_account" "run" {
  account_id   = "eagle-bench-run"
  display_name = "eagle-bench: runs the pipelines"
  depends_on   = [google_project_service.api]
}

resource "google_project_iam_member" "build" {
  for_each = toset(["roles/logging.logWriter", "roles/aiplatform.user"])
  project  = var.project
  role     = each.value
  member   = google_service_account.build.member
}

resource "google_project_iam_member" "pull_requests" {
  for_each = toset(["roles/logging.logWriter"])
  project  = var.project
  role     = each.value
  member   = google_service_account.pull_requests.member
}

resource "google_project_iam_member" "run" {
  for_each = toset(["roles/aiplatform.user"])
  project  = var.project
  role     = each.value
  member   = google_service_account.run.member
}

resource "google_artifact_registry_repository_iam_member" "build_writes_images" {
  repository = google_artifact_registry_repository.images.name
  location   = var.location
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.build.member
}

resource "google_artifact_registry_repository_iam_member" "build_writes_templates" {
  repository = google_artifact_registry_repository.templates.name
  location   = var.location
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.build.member
}

resource "google_artifact_registry_repository_iam_member" "pull_requests_write_images" {
  repository = google_artifact_registry_repository.pull_requests.name
  location   = var.location
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.pull_requests.member
}

resource "google_artifact_registry_repository_iam_member" "runs_read_images" {
  repository = google_artifact_registry_repository.images.name
  location   = var.location
  role       = "roles/artifactregistry.reader"
  member     = google_service_account.run.member
}

resource "google_storage_bucket_iam_member" "runs_write_artifacts" {
  bucket = google_storage_bucket.runs.name
  role   = "roles/storage.objectUser"
  member = google_service_account.run.member
}

resource "google_storage_bucket_iam_member" "run_sees_the_bucket" {
  bucket = google_storage_bucket.runs.name
  role   = "roles/storage.legacyBucketReader"
  member = google_service_account.run.member
}

resource "google_storage_bucket_iam_member" "build_sees_the_bucket" {
  bucket = google_storage_bucket.runs.name
  role   = "roles/storage.legacyBucketReader"
  member = google_service_account.build.member
}

# The source of a build by hand is staged in the bucket.
resource "google_storage_bucket_iam_member" "build_reads_its_source" {
  bucket = google_storage_bucket.runs.name
  role   = "roles/storage.objectViewer"
  member = google_service_account.build.member
}

# The smoke run: who submits a job as an account must be allowed to act as it.
resource "google_service_account_iam_member" "build_acts_as_run" {
  service_account_id = google_service_account.run.name
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.build.member
}

# The token for gated models is put in by hand: `gcloud secrets versions add hf-token --data-file=-`.

resource "google_secret_manager_secret" "hf_token" {
  secret_id = "hf-token"
  replication {
    auto {}
  }
  depends_on = [google_project_service.api]
}

resource "google_secret_manager_secret_iam_member" "runs_read_the_token" {
  secret_id = google_secret_manager_secret.hf_token.id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.run.member
}

# Triggers: the main branch publishes, a pull request does not. The repository must be connected to Cloud Build first.
# Without `github_owner` there are none.

resource "google_cloudbuild_trigger" "main" {
  count           = var.github_owner == "" ? 0 : 1
  name            = "eagle-bench-main"
  location        = "global"
  filename        = "cloudbuild.yaml"
  service_account = google_service_account.build.id
  depends_on      = [google_project_service.api]
  github {
    owner = var.github_owner
    name  = var.github_repository
    push {
      branch = "^main$"
    }
  }
  substitutions = {
    _LOCATION        = var.location
    _TORCH_INDEX_URL = var.torch_index_url
  }
  lifecycle {
    precondition {
      condition     = var.torch_index_url != ""
      error_message = "Triggers need torch_index_url: a build takes PyTorch for the CPU from there."
    }
  }
}

resource "google_cloudbuild_trigger" "pull_request" {
  count           = var.github_owner == "" ? 0 : 1
  name            = "eagle-bench-pull-request"
  location        = "global"
  filename        = "cloudbuild.yaml"
  service_account = google_service_account.pull_requests.id
  depends_on      = [google_project_service.api]
  github {
    owner = var.github_owner
    name  = var.github_repository
    pull_request {
      branch          = "^main$"
      comment_control = "COMMENTS_ENABLED_FOR_EXTERNAL_CONTRIBUTORS_ONLY"
    }
  }
  substitutions = {
    _LOCATION        = var.location
    _TORCH_INDEX_URL = var.torch_index_url
    _PUBLISH         = "no"
    _REPOSITORY      = "${var.location}-docker.pkg.dev/${var.project}/eagle-bench-pull-requests"
    _BUILD_ACCOUNT   = google_service_account.pull_requests.email
  }
  lifecycle {
    precondition {
      condition     = var.torch_index_url != ""
      error_message = "Triggers need torch_index_url: a build takes PyTorch for the CPU from there."
    }
  }
}
