# What Terraform does on the management node by SSH: it copies the package and the credentials there, and before the network
# goes it has the node end every compute machine of the cluster. Needs no provider.
terraform {
  required_version = ">= 1.5"
}

locals {
  private_key = var.private_key_file == "" ? null : file(pathexpand(var.private_key_file))
}

resource "terraform_data" "package" {
  count            = var.package == "" ? 0 : 1
  triggers_replace = [filesha256(pathexpand(var.package))]

  connection {
    type        = "ssh"
    host        = var.host
    user        = var.user
    private_key = local.private_key
  }

  provisioner "remote-exec" {
    inline = ["sudo install -d -o ${var.user} /var/lib/slurm-elastic-package"]
  }

  provisioner "file" {
    source      = pathexpand(var.package)
    destination = "/var/lib/slurm-elastic-package/part"
  }

  # Whole or not at all: the playbook waits for the name.
  provisioner "remote-exec" {
    inline = ["mv /var/lib/slurm-elastic-package/part /var/lib/slurm-elastic-package/${var.package_name}"]
  }
}

# Not in the user data, which every user of the machine can read.
resource "terraform_data" "clouds" {
  count            = nonsensitive(length(var.clouds_yaml))
  triggers_replace = [nonsensitive(sha256(var.clouds_yaml[0]))]

  connection {
    type        = "ssh"
    host        = var.host
    user        = var.user
    private_key = local.private_key
  }

  provisioner "remote-exec" {
    inline = ["sudo install -d -m 0755 /etc/openstack", "umask 077 && : > clouds.yaml"]
  }

  provisioner "file" {
    content     = var.clouds_yaml[0]
    destination = "clouds.yaml"
  }

  # Slurm's user may not be there yet; the playbook gives it the file.
  provisioner "remote-exec" {
    inline = [
      "sudo install -m 0400 -o $(id -u slurm 2>/dev/null || echo root) clouds.yaml /etc/openstack/clouds.yaml",
      "rm clouds.yaml",
    ]
  }
}

# Terraform makes no compute machines, but they hold on to its network: `stopnode --all` terminates every machine with this
# cluster's tags, whether Slurm is up or not, and fails if one stays. A changed address is taken over in place, by the next apply:
# `input` replaces nothing, which would stop the nodes of a cluster that is to go on.
resource "terraform_data" "stop_compute_nodes" {
  input = {
    host        = var.host
    user        = var.user
    private_key = var.private_key_file
  }

  provisioner "remote-exec" {
    when = destroy
    # Without the program no compute node was ever started.
    inline = [
      "cd /; [ ! -e /usr/local/bin/stopnode ] || sudo -u slurm /usr/local/bin/stopnode --all --force || { echo 'compute machines are left: end what is named above, then run terraform destroy again' >&2; exit 1; }",
    ]

    connection {
      type        = "ssh"
      host        = self.output.host
      user        = self.output.user
      private_key = self.output.private_key == "" ? null : file(pathexpand(self.output.private_key))
      timeout     = "2m"
    }
  }
}
