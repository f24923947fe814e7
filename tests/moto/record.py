"""Records what boto3 sends for each operation that crates/cloud-aws uses: record.py DIRECTORY

    $(tests/moto/fetch)/bin/python tests/moto/record.py crates/cloud-aws/tests/fixtures/boto3

Nothing is sent: requests are taken from botocore before their way to the network. Time, credentials and tokens are fixed, so that
the signatures can be compared, too, and a second run writes the same files.
"""

import datetime
import json
import pathlib
import sys
import unittest.mock
import urllib.parse

import boto3
import botocore.awsrequest

NOW = datetime.datetime(2026, 11, 18, 12, 0, 0, tzinfo=datetime.timezone.utc)
KEY = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
# Set by the transport, or different in each version of boto3.
LEFT_OUT = {"user-agent", "content-length", "accept-encoding", "amz-sdk-invocation-id", "amz-sdk-request", "expect"}
SUBNET, GROUP, IMAGE = "subnet-0a1b2c3d4e5f60718", "sg-0a1b2c3d4e5f60718", "ami-0a1b2c3d4e5f60718"
NODE = "cheerful-macaw-t3a-small-0001"
IDS = ["i-0a1b2c3d4e5f60718", "i-0a1b2c3d4e5f60719"]
TAGS = {"Name": NODE, "cluster": "cheerful-macaw", "type": "compute", "node": NODE}
USER_DATA = "#!/bin/bash\necho 'hello, wörld' > /etc/motd\n"


def tags(values, *kinds):
    pairs = [{"Key": key, "Value": value} for key, value in values.items()]
    return [{"ResourceType": kind, "Tags": pairs} for kind in kinds]


def nic(index=0, **more):
    return {"DeviceIndex": min(index, 1), "SubnetId": SUBNET, "Groups": [GROUP], **more}


LAUNCH = {"MinCount": 1, "MaxCount": 1, "ImageId": IMAGE, "InstanceType": "t3a.small", "ClientToken": "4f1d2c3b4a59687f"}
TEMPLATE = {"LaunchTemplateId": "lt-0a1b2c3d4e5f60718", "Version": "3"}
OWN = [{"Name": "tag:cluster", "Values": ["cheerful-macaw"]}, {"Name": "tag:type", "Values": ["compute"]}]

# File name, service, operation, arguments.
REQUESTS = [
    # As Cluster in the Cloud launches a node.
    ("run-instances-citc", "ec2", "run_instances", {
        **LAUNCH,
        "KeyName": "ec2-user-cheerful-macaw",
        "UserData": USER_DATA,
        "IamInstanceProfile": {"Name": "describe_tags-cheerful-macaw"},
        "NetworkInterfaces": [nic(AssociatePublicIpAddress=True)],
        "TagSpecifications": tags({key: TAGS[key] for key in ("Name", "cluster", "type")}, "instance"),
    }),
    ("run-instances-plain", "ec2", "run_instances", {
        **LAUNCH,
        "SubnetId": SUBNET,
        "SecurityGroupIds": [GROUP],
        "MetadataOptions": {"HttpTokens": "required"},
        "TagSpecifications": tags(TAGS, "instance"),
    }),
    ("run-instances-full", "ec2", "run_instances", {
        **LAUNCH,
        "MinCount": 1,
        "MaxCount": 200,
        "InstanceType": "p5.48xlarge",
        "KeyName": "key-1",
        "UserData": USER_DATA,
        "IamInstanceProfile": {"Arn": "arn:aws:iam::123456789012:instance-profile/compute"},
        "EbsOptimized": True,
        "Placement": {"GroupName": "pack", "Tenancy": "default"},
        "CapacityReservationSpecification": {
            "CapacityReservationTarget": {"CapacityReservationId": "cr-0a1b2c3d4e5f60718"},
        },
        "InstanceMarketOptions": {
            "MarketType": "spot",
            "SpotOptions": {"MaxPrice": "0.5", "SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
        },
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled", "InstanceMetadataTags": "enabled"},
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 40, "VolumeType": "gp3", "Iops": 4000, "Throughput": 250, "Encrypted": True, "DeleteOnTermination": True}},
        ],
        "NetworkInterfaces": [
            nic(InterfaceType="efa", AssociatePublicIpAddress=False, DeleteOnTermination=True),
            nic(1, InterfaceType="efa-only", NetworkCardIndex=1, DeleteOnTermination=True),
        ],
        "InstanceInitiatedShutdownBehavior": "terminate",
        "CpuOptions": {"CoreCount": 96, "ThreadsPerCore": 1},
        "TagSpecifications": tags(TAGS, "instance", "volume", "network-interface"),
    }),
    ("run-instances-reservation-group", "ec2", "run_instances", {
        **LAUNCH,
        "SubnetId": SUBNET,
        "SecurityGroupIds": [GROUP],
        "CapacityReservationSpecification": {
            "CapacityReservationTarget": {"CapacityReservationResourceGroupArn": "arn:aws:resource-groups:eu-west-1:123456789012:group/gpu"},
        },
        "MetadataOptions": {"HttpTokens": "required"},
        "TagSpecifications": tags(TAGS, "instance"),
    }),
    ("run-instances-capacity-block", "ec2", "run_instances", {
        **LAUNCH,
        "SubnetId": SUBNET,
        "SecurityGroupIds": [GROUP],
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": "cr-0a1b2c3d4e5f60718"}},
        "MetadataOptions": {"HttpTokens": "required"},
        "TagSpecifications": tags(TAGS, "instance"),
    }),
    ("run-instances-template", "ec2", "run_instances", {
        "MinCount": 4,
        "MaxCount": 4,
        "ClientToken": LAUNCH["ClientToken"],
        "LaunchTemplate": TEMPLATE,
        "InstanceType": "c7i.large",
        "SubnetId": SUBNET,
        "TagSpecifications": tags({"cluster": "cheerful-macaw", "type": "compute"}, "instance"),
    }),
    ("run-instances-dry-run", "ec2", "run_instances", {
        **{key: value for key, value in LAUNCH.items() if key != "ClientToken"},
        "ClientToken": "dry",
        "SubnetId": SUBNET,
        "SecurityGroupIds": [GROUP],
        "DryRun": True,
    }),
    ("create-fleet-instant", "ec2", "create_fleet", {
        "ClientToken": LAUNCH["ClientToken"],
        "Type": "instant",
        "LaunchTemplateConfigs": [{
            "LaunchTemplateSpecification": TEMPLATE,
            "Overrides": [
                {"InstanceType": "c7i.large", "SubnetId": SUBNET, "Priority": 0.0, "ImageId": IMAGE},
                {"InstanceType": "c7a.large", "SubnetId": "subnet-0a1b2c3d4e5f60719", "Priority": 1.0, "ImageId": IMAGE},
            ],
        }],
        "OnDemandOptions": {"AllocationStrategy": "prioritized", "MinTargetCapacity": 1},
        "TargetCapacitySpecification": {"TotalTargetCapacity": 8, "DefaultTargetCapacityType": "on-demand"},
        "TagSpecifications": tags({"cluster": "cheerful-macaw", "type": "compute"}, "instance"),
    }),
    ("create-fleet-spot", "ec2", "create_fleet", {
        "ClientToken": LAUNCH["ClientToken"],
        "Type": "instant",
        "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": TEMPLATE, "Overrides": [{"InstanceType": "c7i.large", "SubnetId": SUBNET, "MaxPrice": "0.05"}]}],
        "SpotOptions": {"AllocationStrategy": "price-capacity-optimized", "MinTargetCapacity": 1},
        "TargetCapacitySpecification": {"TotalTargetCapacity": 8, "DefaultTargetCapacityType": "spot"},
    }),
    ("describe-instances-first-page", "ec2", "describe_instances", {"Filters": OWN, "MaxResults": 1000}),
    ("describe-instances-next-page", "ec2", "describe_instances", {"Filters": OWN, "MaxResults": 1000, "NextToken": "eyJ2IjoiMiIs/+=="}),
    ("describe-instances-states", "ec2", "describe_instances", {
        "Filters": [*OWN, {"Name": "instance-state-name", "Values": ["pending", "running", "shutting-down", "stopping", "stopped"]}],
        "MaxResults": 1000,
    }),
    ("describe-instances-by-name", "ec2", "describe_instances", {"Filters": [*OWN, {"Name": "tag:Name", "Values": [NODE]}], "MaxResults": 1000}),
    ("describe-instances-by-id", "ec2", "describe_instances", {"InstanceIds": IDS}),
    ("terminate-instances", "ec2", "terminate_instances", {"InstanceIds": IDS}),
    ("start-instances", "ec2", "start_instances", {"InstanceIds": IDS}),
    ("stop-instances", "ec2", "stop_instances", {"InstanceIds": IDS}),
    ("stop-instances-force", "ec2", "stop_instances", {"InstanceIds": IDS, "Force": True}),
    ("reboot-instances", "ec2", "reboot_instances", {"InstanceIds": IDS}),
    ("create-tags", "ec2", "create_tags", {"Resources": IDS, "Tags": [{"Key": "Name", "Value": NODE}, {"Key": "node", "Value": NODE}]}),
    ("delete-tags", "ec2", "delete_tags", {"Resources": IDS, "Tags": [{"Key": "node"}]}),
    ("describe-images-by-name", "ec2", "describe_images", {
        "Owners": ["self"],
        "Filters": [
            {"Name": "name", "Values": ["citc-slurm-compute-*"]},
            {"Name": "tag:cluster", "Values": ["cheerful-macaw"]},
            {"Name": "architecture", "Values": ["x86_64"]},
        ],
    }),
    ("describe-images-by-id", "ec2", "describe_images", {"ImageIds": [IMAGE]}),
    ("describe-images-paged", "ec2", "describe_images", {"Owners": ["self"], "MaxResults": 1000}),
    ("describe-instance-types", "ec2", "describe_instance_types", {"InstanceTypes": ["t3a.small", "p5.48xlarge"]}),
    ("describe-instance-types-paged", "ec2", "describe_instance_types", {"MaxResults": 100}),
    ("describe-instance-type-offerings", "ec2", "describe_instance_type_offerings", {
        "LocationType": "availability-zone",
        "Filters": [{"Name": "instance-type", "Values": ["t3a.small"]}],
    }),
    ("describe-subnets", "ec2", "describe_subnets", {"SubnetIds": [SUBNET, "subnet-0a1b2c3d4e5f60719"]}),
    ("describe-availability-zones", "ec2", "describe_availability_zones", {}),
    ("describe-launch-template-versions", "ec2", "describe_launch_template_versions", {"LaunchTemplateId": TEMPLATE["LaunchTemplateId"], "Versions": ["3"]}),
    ("create-image", "ec2", "create_image", {
        "InstanceId": IDS[0],
        "Name": "citc-slurm-compute-2",
        "NoReboot": True,
        "TagSpecifications": tags({"cluster": "cheerful-macaw"}, "image", "snapshot"),
    }),
    ("create-replace-root-volume-task", "ec2", "create_replace_root_volume_task", {
        "InstanceId": IDS[0],
        "ImageId": IMAGE,
        "ClientToken": LAUNCH["ClientToken"],
        "DeleteReplacedRootVolume": True,
    }),
    ("describe-replace-root-volume-tasks", "ec2", "describe_replace_root_volume_tasks", {"ReplaceRootVolumeTaskIds": ["replacevol-0a1b2c3d4e5f60718"]}),
    ("describe-replace-root-volume-tasks-of-instance", "ec2", "describe_replace_root_volume_tasks", {"Filters": [{"Name": "instance-id", "Values": IDS[:1]}]}),
    ("get-console-output", "ec2", "get_console_output", {"InstanceId": IDS[0], "Latest": True}),
    ("get-caller-identity", "sts", "get_caller_identity", {}),
    ("decode-authorization-message", "sts", "decode_authorization_message", {"EncodedMessage": "mT0/+enc=="}),
    ("assume-role", "sts", "assume_role", {"RoleArn": "arn:aws:iam::123456789012:role/slurm", "RoleSessionName": "slurm-elastic", "DurationSeconds": 3600}),
    ("assume-role-with-web-identity", "sts", "assume_role_with_web_identity", {
        "RoleArn": "arn:aws:iam::123456789012:role/slurm",
        "RoleSessionName": "slurm-elastic",
        "WebIdentityToken": "eyJhbGciOi.eyJzdWIi.c2ln",
    }),
    ("get-service-quota", "service-quotas", "get_service_quota", {"ServiceCode": "ec2", "QuotaCode": "L-1216C47A"}),
    ("list-service-quotas", "service-quotas", "list_service_quotas", {"ServiceCode": "ec2", "MaxResults": 100}),
]


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def sent(session, service, operation, arguments):
    """The request that boto3 would send."""
    taken = []

    def take(request, **_):
        taken.append(request)
        return botocore.awsrequest.AWSResponse(request.url, 200, {}, None)

    client = session.client(service)
    client.meta.events.register("before-send", take)
    with unittest.mock.patch("botocore.auth.get_current_datetime", lambda: NOW.replace(tzinfo=None)):
        try:
            getattr(client, operation)(**arguments)
        except Exception:
            # There is no answer to read.
            pass
    [request] = taken[:1]
    return request


def fixture(session, service, operation, arguments):
    request = sent(session, service, operation, arguments)
    url = urllib.parse.urlsplit(request.url)
    headers = {name.lower(): text(value) for name, value in request.headers.items()}
    body = text(request.body or b"")
    form = "urlencoded" in headers.get("content-type", "")
    pairs = urllib.parse.parse_qsl(body, keep_blank_values=True) if form else []
    assert len(dict(pairs)) == len(pairs)
    return {
        "operation": operation,
        "boto3": boto3.__version__,
        "method": request.method,
        "host": url.netloc,
        "path": url.path or "/",
        "headers": {name: value for name, value in sorted(headers.items()) if name not in LEFT_OUT},
        "form": dict(pairs),
        "body": body,
    }


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    session = boto3.Session(region_name="eu-west-1", **KEY)
    for name, service, operation, arguments in REQUESTS:
        found = fixture(session, service, operation, arguments)
        (directory / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(REQUESTS)} requests recorded in {directory}")


main()
