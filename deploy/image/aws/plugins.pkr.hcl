# Packer of 1.7 or newer.
packer {
  required_plugins {
    amazon = {
      source  = "github.com/hashicorp/amazon"
      version = ">= 1.0"
    }
  }
}
