"""Records what boto3 sends for each operation that crates/cloud-aws uses: record.py DIRECTORY

    $(tests/moto/fetch)/bin/python tests/moto/record.py tests/moto/boto3

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
TAGS = {"cluster": "cheerful-macaw", "node": NODE, "type": "compute"}
# What stands in a tag for the name, where instances are launched together; their names are in `names:0` and so on.
BY_INDEX = "@launch-index"
NODES = ["cheerful-macaw-t3a-small-0001", "cheerful-macaw-t3a-small-0002", "cheerful-macaw-t3a-small-0003"]
USER_DATA = "#!/bin/bash\necho 'hello, wörld' > /etc/motd\n"


def tags(values, *kinds):
    pairs = [{"Key": key, "Value": value} for key, value in values.items()]
    return [{"ResourceType": kind, "Tags": pairs} for kind in kinds]


def nic(index=0, **more):
    return {"DeviceIndex": min(index, 1), "SubnetId": SUBNET, "Groups": [GROUP], **more}


def filters(**values):
    return [{"Name": name.replace("__", ":").replace("_", "-"), "Values": given} for name, given in values.items()]


TOKEN = "4f1d2c3b4a59687f"
ONE = {"MinCount": 1, "MaxCount": 1, "ImageId": IMAGE, "InstanceType": "t3a.small", "ClientToken": TOKEN}
# What ours always say.
OURS = {
    **ONE,
    "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "InstanceMetadataTags": "enabled"},
    "TagSpecifications": tags({**TAGS, "Name": NODE}, "instance", "volume"),
}
PLACED = {**OURS, "Placement": {"AvailabilityZone": "eu-west-1a"}, "SubnetId": SUBNET, "SecurityGroupIds": [GROUP]}
RESERVED = "arn:aws:resource-groups:eu-west-1:123456789012:group/gpu"
TEMPLATE = {"LaunchTemplateId": "lt-0a1b2c3d4e5f60718", "Version": "3"}
OWN = filters(tag__cluster=["cheerful-macaw", BY_INDEX], tag__type=["compute", BY_INDEX])

# File name, service, operation, arguments.
REQUESTS = [
    # As Cluster in the Cloud launches a node.
    ("run-instances-citc", "ec2", "run_instances", {
        **ONE,
        "KeyName": "ec2-user-cheerful-macaw",
        "UserData": USER_DATA,
        "IamInstanceProfile": {"Name": "describe_tags-cheerful-macaw"},
        "NetworkInterfaces": [nic(AssociatePublicIpAddress=True)],
        "TagSpecifications": tags({"Name": NODE, "cluster": "cheerful-macaw", "type": "compute"}, "instance"),
    }),
    ("run-instances", "ec2", "run_instances", PLACED),
    ("run-instances-many", "ec2", "run_instances", {
        **PLACED,
        "MaxCount": 3,
        "TagSpecifications": tags({**TAGS, "node": BY_INDEX, "names:0": " ".join(NODES)}, "instance", "volume"),
    }),
    ("run-instances-full", "ec2", "run_instances", {
        **OURS,
        "InstanceType": "p5.48xlarge",
        "KeyName": "key-1",
        "UserData": USER_DATA,
        "IamInstanceProfile": {"Arn": "arn:aws:iam::123456789012:instance-profile/compute"},
        "Placement": {"GroupName": "pack", "AvailabilityZone": "eu-west-1a"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": "cr-0a1b2c3d4e5f60718"}},
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 40, "DeleteOnTermination": True}}],
        "NetworkInterfaces": [nic(card, InterfaceType="efa", NetworkCardIndex=card, DeleteOnTermination=True) for card in (0, 1)],
    }),
    ("run-instances-spot", "ec2", "run_instances", {
        **PLACED,
        "InstanceMarketOptions": {
            "MarketType": "spot",
            "SpotOptions": {"MaxPrice": "0.5", "SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
        },
    }),
    ("run-instances-reservation-group", "ec2", "run_instances", {
        **PLACED,
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationResourceGroupArn": RESERVED}},
    }),
    ("run-instances-capacity-block", "ec2", "run_instances", {
        **PLACED,
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": "cr-0a1b2c3d4e5f60718"}},
    }),
    ("run-instances-template", "ec2", "run_instances", {**PLACED, "LaunchTemplate": TEMPLATE}),
    ("run-instances-dry-run", "ec2", "run_instances", {**{key: value for key, value in PLACED.items() if key != "ClientToken"}, "ClientToken": "dry", "DryRun": True}),
    ("terminate-instances-dry-run", "ec2", "terminate_instances", {"InstanceIds": IDS[:1], "DryRun": True}),
    ("describe-instances", "ec2", "describe_instances", {"Filters": OWN, "MaxResults": 1000}),
    ("describe-instances-next-page", "ec2", "describe_instances", {"Filters": OWN, "MaxResults": 1000, "NextToken": "eyJ2IjoiMiIs/+=="}),
    ("describe-instances-by-id", "ec2", "describe_instances", {"InstanceIds": IDS[:1]}),
    ("describe-instances-addresses", "ec2", "describe_instances", {"Filters": filters(instance_id=IDS), "MaxResults": 1000}),
    ("terminate-instances", "ec2", "terminate_instances", {"InstanceIds": IDS}),
    ("start-instances", "ec2", "start_instances", {"InstanceIds": IDS[:1]}),
    ("stop-instances", "ec2", "stop_instances", {"InstanceIds": IDS[:1]}),
    ("reboot-instances", "ec2", "reboot_instances", {"InstanceIds": IDS[:1]}),
    ("create-replace-root-volume-task", "ec2", "create_replace_root_volume_task", {
        "InstanceId": IDS[0],
        "ImageId": IMAGE,
        "ClientToken": TOKEN,
        "DeleteReplacedRootVolume": True,
    }),
    ("create-tags", "ec2", "create_tags", {"Resources": IDS[:1], "Tags": [{"Key": "boot-image", "Value": IMAGE}]}),
    ("describe-replace-root-volume-tasks", "ec2", "describe_replace_root_volume_tasks", {"Filters": filters(instance_id=IDS[:1]), "MaxResults": 50}),
    ("describe-images", "ec2", "describe_images", {
        "Owners": ["self", "amazon"],
        "Filters": filters(name=["citc-slurm-compute-*"], tag__cluster=["cheerful-macaw"]),
        "MaxResults": 1000,
    }),
    ("describe-images-by-id", "ec2", "describe_images", {"Filters": filters(image_id=[IMAGE])}),
    ("describe-instance-types", "ec2", "describe_instance_types", {"MaxResults": 100}),
    ("describe-subnets", "ec2", "describe_subnets", {"Filters": filters(subnet_id=[SUBNET]), "MaxResults": 1000}),
    ("create-image", "ec2", "create_image", {"InstanceId": IDS[0], "Name": "citc-slurm-compute-2"}),
    ("get-caller-identity", "sts", "get_caller_identity", {}),
    ("decode-authorization-message", "sts", "decode_authorization_message", {"EncodedMessage": "YWJj-_"}),
    ("assume-role", "sts", "assume_role", {"RoleArn": "arn:aws:iam::123456789012:role/slurm", "RoleSessionName": "slurm-elastic", "DurationSeconds": 3600}),
    ("assume-role-with-web-identity", "sts", "assume_role_with_web_identity", {
        "RoleArn": "arn:aws:iam::123456789012:role/slurm",
        "RoleSessionName": "slurm-elastic",
        "WebIdentityToken": "eyJhbGciOi.eyJzdWIi.c2ln",
    }),
    ("list-service-quotas", "service-quotas", "list_service_quotas", {"ServiceCode": "ec2", "MaxResults": 100}),
]


def check(shape, value, path):
    """boto3 sends a number that is too large, and AWS refuses it: bounds are only in its description of the service."""
    if shape.type_name == "structure":
        for name, member in value.items():
            check(shape.members[name], member, f"{path}.{name}")
    elif shape.type_name == "list":
        for member in value:
            check(shape.member, member, path)
    elif shape.type_name in ("integer", "long"):
        least, most = shape.metadata.get("min", value), shape.metadata.get("max", value)
        assert least <= value <= most, f"{path} is {value}, and has to be from {least} to {most}"


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
    method = client.meta.method_to_api_mapping[operation]
    check(client.meta.service_model.operation_model(method).input_shape, arguments, method)
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
