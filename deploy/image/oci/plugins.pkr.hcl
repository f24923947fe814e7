# Packer of 1.7 or newer.
packer {
  required_plugins {
    oracle = {
      source  = "github.com/hashicorp/oracle"
      version = ">= 1.0"
    }
  }
}
