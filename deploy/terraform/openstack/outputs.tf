output "management_address" {
  description = "Address of the management node."
  value       = openstack_networking_floatingip_v2.management.address
}

output "ssh" {
  description = "How to log in."
  value       = "ssh ${var.management_user}@${openstack_networking_floatingip_v2.management.address}"
}

output "progress" {
  description = "How to see when the management node is ready: some ten minutes."
  value       = "ssh ${var.management_user}@${openstack_networking_floatingip_v2.management.address} sudo tail -f /root/ansible-pull.log"
}

output "cluster_id" {
  description = "Name of the cluster."
  value       = var.cluster_id
}
