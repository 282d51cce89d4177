output "pipeline_root" {
  value       = "gs://${google_storage_bucket.runs.name}/runs"
  description = "`pipeline_root` of a config."
}

output "service_account" {
  value       = google_service_account.run.email
  description = "`service_account` of a config."
}

output "templates" {
  value       = "https://${var.location}-kfp.pkg.dev/${var.project}/${google_artifact_registry_repository.templates.repository_id}"
  description = "Where published templates stand."
}
