#!/bin/bash
# bootstrap_file, the other way: a plain image that configures itself by Ansible. Slower by minutes for each node;
# ResumeTimeout has to allow for it.
set -euo pipefail
exec >> /root/bootstrap.log 2>&1

dnf install -y ansible-core git
printf '[compute]\n%s\n' "$(hostname --fqdn)" > /root/hosts
ansible-pull --url=https://git.example.org/cluster/site.git --checkout=main --inventory=/root/hosts compute.yml
# Also at the next boot, when none of this runs again.
systemctl enable --now slurmd
