terraform {
  required_version = ">= 1.5"

  required_providers {
    openstack = {
      source  = "terraform-provider-openstack/openstack"
      version = ">= 1.53"
    }
  }
}

# Credentials: an entry of clouds.yaml on this computer.
provider "openstack" {
  cloud = var.cloud
}
