# Terraform makes the management node and the network; the compute nodes come and go without it. Before the network is
# destroyed they have to be gone: `stopnode --all` terminates every machine with this cluster's tags, Slurm up or not.
resource "null_resource" "stop_compute_nodes" {
  triggers = {
    host = oci_core_instance.management.public_ip
  }

  # Destroyed before these: Terraform ends what has no order at the same time, and without the policy the management node may end
  # no machine, without the shared file system it reads no slurm.conf. Leave out what yours has not.
  depends_on = [
    oci_identity_policy.slurm,
    oci_identity_dynamic_group.slurm,
    oci_file_storage_export.shared,
  ]

  # A changed address would replace this resource, and that would stop the nodes of a cluster that is to go on.
  lifecycle {
    ignore_changes = [triggers]
  }

  provisioner "remote-exec" {
    when   = destroy
    inline = ["sudo -u slurm /usr/local/bin/stopnode --all --force"]

    connection {
      type = "ssh"
      host = self.triggers.host
      user = "opc"
    }
  }
}

# What the programs need to know of this cluster.
resource "local_sensitive_file" "startnode" {
  filename        = "${path.module}/startnode.yaml"
  file_permission = "0640"
  content = yamlencode({
    csp            = "oracle"
    region         = var.region
    compartment_id = var.compartment_ocid
    vcn_id         = oci_core_vcn.cluster.id
    subnet_id      = oci_core_subnet.cluster.id
    ad_root        = substr(oci_core_instance.management.availability_domain, 0, length(oci_core_instance.management.availability_domain) - 1)
    cluster_id     = local.cluster_id
    auth           = "instance_principal"
  })
}
