# The management node may start and end machines, by being the machine that it is.
resource "oci_identity_dynamic_group" "management" {
  compartment_id = var.tenancy_ocid
  name           = "slurm-${var.cluster_id}"
  description    = "Management node of the cluster ${var.cluster_id}"
  matching_rule  = "instance.id = '${oci_core_instance.management.id}'"
  freeform_tags  = module.cluster.tags
}

resource "oci_identity_policy" "management" {
  compartment_id = var.tenancy_ocid
  name           = "slurm-${var.cluster_id}"
  description    = "What the management node of the cluster ${var.cluster_id} may do"
  freeform_tags  = module.cluster.tags

  # docs/nodes.md says what each is for.
  statements = [
    "Allow dynamic-group ${oci_identity_dynamic_group.management.name} to manage instance-family in compartment id ${var.compartment_ocid}",
    "Allow dynamic-group ${oci_identity_dynamic_group.management.name} to manage volume-family in compartment id ${var.compartment_ocid}",
    "Allow dynamic-group ${oci_identity_dynamic_group.management.name} to use virtual-network-family in compartment id ${var.compartment_ocid}",
    "Allow dynamic-group ${oci_identity_dynamic_group.management.name} to use compute-clusters in compartment id ${var.compartment_ocid}",
    "Allow dynamic-group ${oci_identity_dynamic_group.management.name} to inspect compartments in tenancy",
    "Allow dynamic-group ${oci_identity_dynamic_group.management.name} to read resource-availability in tenancy",
  ]
}
