output "management_address" {
  description = "Address of the management node."
  value       = aws_instance.management.public_ip
}

output "ssh" {
  description = "How to log in."
  value       = "ssh ${var.management_user}@${aws_instance.management.public_ip}"
}

output "progress" {
  description = "How to see when the management node is ready: some ten minutes."
  value       = "ssh ${var.management_user}@${aws_instance.management.public_ip} sudo tail -f /root/ansible-pull.log"
}

output "cluster_id" {
  description = "Name of the cluster."
  value       = var.cluster_id
}
