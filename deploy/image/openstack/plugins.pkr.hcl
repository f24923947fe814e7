# Packer of 1.7 or newer.
packer {
  required_plugins {
    openstack = {
      source  = "github.com/hashicorp/openstack"
      version = ">= 1.0"
    }
  }
}
