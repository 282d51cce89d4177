variable "project" {
  type        = string
  description = "Project for builds, images, templates and runs."
}

variable "location" {
  type        = string
  default     = "us-central1"
  description = "Region of the repositories, the bucket and the runs."
}

variable "github_owner" {
  type        = string
  default     = ""
  description = "Owner of the repository on GitHub, connected to Cloud Build; without one no triggers are made."
}

variable "github_repository" {
  type        = string
  default     = "eagle-bench"
  description = "Name of the repository on GitHub."
}

variable "torch_index_url" {
  type        = string
  default     = ""
  description = "An index with PyTorch for the CPU, for triggers: the PyTorch project's own, or a copy of yours."
}
