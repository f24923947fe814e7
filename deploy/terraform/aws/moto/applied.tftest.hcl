# Applies with the real provider to moto's server, and destroys: deploy/test starts one and says where it is.
override_module {
  target = module.management
}

# Canonical has no account there.
override_data {
  target = data.aws_ami.ubuntu
  values = { id = "ami-0123456789abcdef0" }
}

variables {
  region         = "eu-west-1"
  zones          = ["eu-west-1a", "eu-west-1b"]
  cluster_id     = "cheerful-macaw"
  ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFr0rF0rF0rF0rF0rF0rF0rF0rF0rF0rF0rF0rF0rF0r you@example.org"
  allowed_cidr   = "192.0.2.7/32"
  package        = ""
  repository     = "https://git.example.org/slurm-elastic.git"
  limits         = { "c7i.large" = 10 }
}

run "everything_is_made_and_destroyed" {
  assert {
    condition     = output.management_address != "" && aws_instance.management.metadata_options[0].http_tokens == "required"
    error_message = "the management node has no address, or answers without a token"
  }

  assert {
    condition     = length(yamldecode(module.cluster.startnode_yaml).subnets) == 2
    error_message = "not each zone has a subnet: ${module.cluster.startnode_yaml}"
  }
}
