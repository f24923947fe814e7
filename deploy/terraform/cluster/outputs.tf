output "tags" {
  description = "Tags of everything that belongs to the cluster."
  value       = { cluster = var.cluster_id }
}

output "management_tags" {
  description = "Tags of the management node, which is no compute node: `stopnode --all` leaves it."
  value       = { cluster = var.cluster_id, nodetype = "mgmt" }
}

output "management_name" {
  description = "Host name of the management node."
  value       = "mgmt"
}

output "dns_label" {
  description = "Label of the network in DNS: letters and digits, at most 15."
  value       = substr(replace(var.cluster_id, "-", ""), 0, 15)
}

output "startnode_yaml" {
  description = "The file /etc/citc/startnode.yaml."
  value       = yamlencode(local.startnode)
}

output "user_data" {
  description = "The user data of the management node, as text."
  value       = local.user_data

  # Clouds refuse more: OCI 32,000 bytes of all metadata in base64, Nova 65,535 bytes in base64.
  precondition {
    condition     = length(base64encode(local.user_data)) < 30000
    error_message = "The user data of the management node has ${length(base64encode(local.user_data))} bytes in base64, and the cloud takes at most 30000: shorten limits."
  }
}
