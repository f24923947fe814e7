# Canonical's newest.
data "aws_ami" "ubuntu" {
  most_recent = true
  owners      = ["099720109477"]

  filter {
    name   = "name"
    values = ["ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-*"]
  }
}

# Fails while planning if the region has no such type in the zone of the management node.
data "aws_ec2_instance_type_offerings" "management" {
  location_type = "availability-zone"

  filter {
    name   = "instance-type"
    values = [var.management_type]
  }

  filter {
    name   = "location"
    values = [var.zones[0]]
  }

  lifecycle {
    postcondition {
      condition     = length(self.instance_types) > 0
      error_message = "${var.zones[0]} has no ${var.management_type}. Set management_type, or another first zone, in terraform.tfvars."
    }
  }
}

locals {
  management_image = var.management_image_id != "" ? var.management_image_id : data.aws_ami.ubuntu.id
  share            = "${aws_efs_mount_target.shared[0].ip_address}:/"
}

module "cluster" {
  source = "../cluster"

  cluster_id = var.cluster_id
  repository = var.repository
  branch     = var.branch
  limits     = var.limits

  startnode = {
    csp              = "aws"
    region           = var.region
    subnets          = { for subnet in aws_subnet.cluster : subnet.availability_zone => subnet.id }
    security_groups  = [aws_security_group.cluster.id]
    keypair          = aws_key_pair.operators.key_name
    instance_profile = aws_iam_instance_profile.compute.name
    image_id         = var.compute_image_id != "" ? var.compute_image_id : local.management_image
  }

  ansible = merge(
    {
      cluster_share   = local.share
      cluster_network = var.network_cidr
    },
    var.ansible,
  )
}

resource "aws_key_pair" "operators" {
  key_name   = "slurm-${var.cluster_id}"
  public_key = var.ssh_public_key
  tags       = module.cluster.tags
}

resource "aws_instance" "management" {
  ami                         = local.management_image
  instance_type               = var.management_type
  subnet_id                   = aws_subnet.cluster[0].id
  vpc_security_group_ids      = [aws_security_group.cluster.id, aws_security_group.login.id]
  key_name                    = aws_key_pair.operators.key_name
  iam_instance_profile        = aws_iam_instance_profile.management.name
  associate_public_ip_address = true
  user_data_base64            = base64gzip(module.cluster.user_data)
  tags                        = merge(module.cluster.management_tags, { Name = module.cluster.management_name })

  # Credentials are only for those who ask as a program of the machine itself.
  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_size = var.management_disk_gb
    volume_type = "gp3"
    encrypted   = true
  }

  # A newer image or other user data is no reason to lose the cluster; `configure-management` brings in changes.
  lifecycle {
    ignore_changes = [ami, user_data_base64]

    # EC2 takes 16,384 bytes, here compressed.
    precondition {
      condition     = length(base64gzip(module.cluster.user_data)) <= 21848
      error_message = "The user data of the management node has ${length(base64gzip(module.cluster.user_data))} bytes in base64 after compression, and EC2 takes at most 21848: shorten limits."
    }
  }

  depends_on = [data.aws_ec2_instance_type_offerings.management]
}

module "management" {
  source = "../management"

  host             = aws_instance.management.public_ip
  user             = var.management_user
  private_key_file = var.ssh_private_key_file
  package          = var.package

  # Destroyed before these: without the policy the management node may end no machine, without the share and the way out it
  # is not reached or reads no slurm.conf.
  depends_on = [
    aws_iam_role_policy.management,
    aws_iam_instance_profile.management,
    aws_efs_mount_target.shared,
    aws_route.internet,
    aws_route_table_association.cluster,
    aws_security_group.cluster,
    aws_security_group.login,
  ]
}
