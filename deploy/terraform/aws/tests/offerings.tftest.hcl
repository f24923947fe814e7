# The zone of the management node may not have its type, which is said while planning.
mock_provider "aws" {
  mock_data "aws_ec2_instance_type_offerings" {
    defaults = { instance_types = [] }
  }
}

override_module {
  target = module.management
}

variables {
  region         = "eu-west-1"
  zones          = ["eu-west-1a"]
  cluster_id     = "cheerful-macaw"
  ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFr0rF0rF0rF0rF0rF0rF0rF0rF0rF0rF0rF0rF0rF0r you@example.org"
  allowed_cidr   = "192.0.2.7/32"
  package        = ""
  repository     = "https://git.example.org/slurm-elastic.git"
}

run "a_zone_without_the_type_is_an_error" {
  command         = plan
  expect_failures = [data.aws_ec2_instance_type_offerings.management]
}
