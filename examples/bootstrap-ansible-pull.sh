#!/bin/bash
# A bootstrap_file for a plain image that configures itself with Ansible. Each node takes minutes longer; ResumeTimeout must
# allow for it.
set -euo pipefail
exec >> /root/bootstrap.log 2>&1

dnf install -y ansible-core git
printf '[compute]\n%s\n' "$(hostname --fqdn)" > /root/hosts
ansible-pull --url=https://git.example.org/cluster/site.git --checkout=main --inventory=/root/hosts compute.yml
# Enabled, because this script does not run at the next boot.
systemctl enable --now slurmd
