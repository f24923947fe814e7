#!/bin/sh
# A bootstrap_file for AWS, for images that contain Slurm and munge: gives the machine the name of its node, then starts slurmd.
#
# The name is in the metadata service, so that neither permissions nor the AWS CLI are needed: in the tag Name of a machine that was
# launched by itself; otherwise in the tags names:0, names:1 …, which hold the names of all that were launched together. A machine's
# own is the one at its launch index.
set -eu

metadata=http://169.254.169.254/latest
token=$(curl -sSf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$metadata/api/token")
about() { curl -sf -H "X-aws-ec2-metadata-token: $token" "$metadata/meta-data/$1"; }

if ! name=$(about tags/instance/Name); then
    chunk=0 names=
    while part=$(about "tags/instance/names:$chunk"); do
        names="$names $part"
        chunk=$((chunk + 1))
    done
    # shellcheck disable=SC2086 # the names are words
    set -- $names
    shift "$(about ami-launch-index)"
    name=$1
fi

hostnamectl set-hostname "$name"
systemctl enable --now munge
# slurm.conf comes from slurmctld on `mgmt` (SlurmctldParameters=enable_configless). On Debian the file is /etc/default/slurmd.
echo 'SLURMD_OPTIONS="--conf-server mgmt"' > /etc/sysconfig/slurmd
systemctl enable --now slurmd
