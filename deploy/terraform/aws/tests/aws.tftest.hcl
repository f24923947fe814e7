# Plans and applies with a mock of the provider: deploy/test gives it the provider's schema.
mock_provider "aws" {
  mock_data "aws_ami" {
    defaults = { id = "ami-0123456789abcdef0" }
  }

  mock_data "aws_ec2_instance_type_offerings" {
    defaults = { instance_types = ["t3.large"] }
  }

  mock_resource "aws_instance" {
    defaults = { id = "i-0123456789abcdef0", public_ip = "192.0.2.20" }
  }

  mock_resource "aws_efs_mount_target" {
    defaults = { ip_address = "10.1.0.9" }
  }

  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/slurm-cheerful-macaw-compute" }
  }
}

override_module {
  target = module.management
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

run "everything_is_made" {
  assert {
    condition     = output.ssh == "ssh ubuntu@192.0.2.20"
    error_message = "the ssh line: ${output.ssh}"
  }

  assert {
    condition     = aws_subnet.cluster[1].cidr_block == "10.1.64.0/18" && aws_subnet.cluster[1].availability_zone == "eu-west-1b"
    error_message = "not each zone has a subnet"
  }

  assert {
    condition     = jsondecode(jsonencode(yamldecode(module.cluster.startnode_yaml))).csp == "aws" && length(yamldecode(module.cluster.startnode_yaml).subnets) == 2
    error_message = "startnode.yaml: ${module.cluster.startnode_yaml}"
  }

  assert {
    condition     = yamldecode(module.cluster.startnode_yaml).image_id == "ami-0123456789abcdef0"
    error_message = "without a compute image nodes do not boot that of the management node"
  }

  assert {
    condition     = strcontains(base64decode([for file in yamldecode(module.cluster.user_data).write_files : file.content if file.path == "/etc/slurm-elastic/cluster.yml"][0]), "\"10.1.0.9:/\"")
    error_message = "the management node does not learn where the share is"
  }

  assert {
    condition     = aws_instance.management.user_data_base64 == base64gzip(module.cluster.user_data)
    error_message = "the user data is not what the management node boots with"
  }
}

run "the_policy_is_about_this_cluster" {
  assert {
    condition     = strcontains(aws_iam_role_policy.management.policy, "\"cheerful-macaw\"") && strcontains(aws_iam_role_policy.management.policy, "role/slurm-cheerful-macaw-compute")
    error_message = "the policy names neither this cluster nor the role of its nodes: ${aws_iam_role_policy.management.policy}"
  }

  assert {
    condition     = !can(regex("CLUSTER_ID|COMPUTE_ROLE|ACCOUNT", aws_iam_role_policy.management.policy))
    error_message = "a placeholder is left in the policy: ${aws_iam_role_policy.management.policy}"
  }
}

run "a_path_is_no_public_key" {
  command = plan

  variables {
    ssh_public_key = "~/.ssh/id_ed25519.pub"
  }

  expect_failures = [var.ssh_public_key]
}

run "half_a_public_key_is_refused" {
  command = plan

  variables {
    ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFr0rF0rF0rF0rF0"
  }

  expect_failures = [var.ssh_public_key]
}

run "ec2_takes_no_ecdsa_key" {
  command = plan

  variables {
    ssh_public_key = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBKIIyCDZBjnsoIprlDJhcY0y64kxSfAn1yI+Ba2RjDN/dhrvE813vM47GryLKUTg0JzVgksYhALr6td8tVKj9eg= you@example.org"
  }

  expect_failures = [var.ssh_public_key]
}

run "an_address_is_no_range" {
  command = plan

  variables {
    allowed_cidr = "192.0.2.7"
  }

  expect_failures = [var.allowed_cidr]
}

run "a_zone_is_named_once" {
  command = plan

  variables {
    zones = ["eu-west-1a", "eu-west-1a"]
  }

  expect_failures = [var.zones]
}
