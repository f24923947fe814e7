# Terraform creates the management node and the network, but not the compute nodes. They must be gone before the network is
# destroyed: `stopnode --all` terminates every machine with this cluster's tags, whether Slurm is up or not.
resource "null_resource" "stop_compute_nodes" {
  triggers = {
    host = oci_core_instance.management.public_ip
  }

  # This resource must be destroyed before these; without an order, Terraform destroys them at the same time. Without the policy,
  # the management node may not terminate machines; without the shared file system, it cannot read slurm.conf. Remove what your
  # cluster does not have.
  depends_on = [
    oci_identity_policy.slurm,
    oci_identity_dynamic_group.slurm,
    oci_file_storage_export.shared,
  ]

  # A changed address would replace this resource, and the replacement would stop all nodes of a running cluster.
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

# The configuration of the programs for this cluster.
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
