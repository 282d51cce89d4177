"""Servers on loopback that speak the protocols of the web, of the Hugging Face hub and of Cloud Storage."""
