"""The compiled pipeline: one file for Vertex AI Pipelines and for this machine."""
