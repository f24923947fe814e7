"""What moto does not have and can only be added to its models: replaced root volumes, MaxCount, room for so many instances, launches
that fail later, shorter pages, quotas.

Everything that can be done between a client and moto (lost and late answers, errors, throttling, client tokens, listings that lag)
is done by the program ec2-proxy of cloud-sim.
"""

import contextvars
import json
from xml.sax.saxutils import escape

from werkzeug.exceptions import HTTPException

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.instances import Instance, InstanceBackend, StateReason
from moto.ec2.responses import EC2Response
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix
from moto.servicequotas.responses import ServiceQuotasResponse

ACCOUNT = "123456789012"

# How an instance has booted each time, by its id: "start", "reboot" or "replace".
boots = {}

# How many instances fit: {"zone": ..., "type": ..., "instances": ...}; without a zone or a type, in each.
room = []

# Instances that were accepted without room, and will fail.
doomed = []

# The longest page of a listing of instances, where it is shorter than what was asked for.
pages = {}

# How many more than MinCount a launch asks for.
extra = contextvars.ContextVar("extra", default=0)

# Quotas of EC2, by their codes: hardware threads of standard instances, and of those with the letter P.
QUOTAS = {"L-1216C47A": 1920.0, "L-417A185B": 192.0}

tasks = {}

# The image that an instance boots, where its root volume was replaced.
root_images = {}


class NoRoom(HTTPException):
    """EC2 says 500 when it has no machine; moto's own errors are always 400."""

    code = 500

    def __init__(self, zone, kind):
        super().__init__()
        self.message = (
            f"We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone}). "
            "Our system will be working on provisioning additional capacity."
        )
        self.description = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>InsufficientInstanceCapacity</Code>'
            f"<Message>{escape(self.message)}</Message></Error></Errors><RequestID>no-room</RequestID></Response>"
        )

    def get_headers(self, *_):
        return [("Content-Type", "text/xml")]


def set_room(rules, later=False):
    """Bounds how many instances fit. With `later`, a launch of more is accepted, and they fail."""
    room[:] = [{**rule, "later": later} for rule in rules]


def free(backend, zone, kind):
    """How many more instances fit; None if any number does."""
    live = [one for one in backend.all_instances() if one.state in ("pending", "running", "stopping", "stopped")]
    bounds = []
    for rule in room:
        if rule.get("zone") in (None, zone) and rule.get("type") in (None, kind):
            used = [one for one in live if one.availability_zone == zone and rule.get("type") in (None, one.instance_type)]
            bounds.append(max(0, rule["instances"] - len(used)))
    return min(bounds) if bounds else None


def place_of(backend, subnet_id, nics, placement):
    subnet_id = subnet_id or next((nic["SubnetId"] for nic in nics or [] if "SubnetId" in nic), None)
    return backend.get_subnet(subnet_id).availability_zone if subnet_id else placement or f"{backend.region_name}a"


def run_instances(original):
    def run(self, image_id, count, user_data, security_group_names, **kwargs):
        kind = kwargs.get("instance_type")
        zone = place_of(self, kwargs.get("subnet_id"), kwargs.get("nics"), kwargs.get("placement"))
        fits = free(self, zone, kind)
        most = count + extra.get()
        if fits is not None and any(rule["later"] for rule in room):
            reservation = original(self, image_id, most, user_data, security_group_names, **kwargs)
            doomed.extend(instance.id for instance in reservation.instances[fits:])
            return reservation
        if fits is not None and fits < count:
            raise NoRoom(zone, kind)
        made = most if fits is None else min(most, fits)
        return original(self, image_id, made, user_data, security_group_names, **kwargs)

    return run


def describe_instances(original):
    """Shows that what was accepted without room has failed, and pages that are no longer than `pages` says."""

    def respond(self):
        while doomed:
            instance = self.ec2_backend.get_instance(doomed.pop())
            instance.terminate()
            code = "Server.InsufficientInstanceCapacity"
            instance.state_reason = StateReason(f"{code}: There is no Spot capacity available that matches your request.", code)
        value, most = self._get_param, pages.get("most")
        if most:
            self._get_param = lambda name, if_none=None: most if name == "MaxResults" else value(name, if_none)
        return original(self)

    return respond


def with_most(original):
    """moto launches MinCount instances, EC2 as many as it can up to MaxCount."""

    def respond(self):
        least, most = (int(self._get_param(name, if_none="1")) for name in ("MinCount", "MaxCount"))
        token = extra.set(max(0, most - least))
        try:
            return original(self)
        finally:
            extra.reset(token)

    return respond


def booted(how):
    def wrap(original):
        def act(self, *arguments, **named):
            result = original(self, *arguments, **named)
            boots.setdefault(self.id, []).append(how)
            return result

        return act

    return wrap


def create_replace_root_volume_task(self):
    """The volume is replaced at once, and the instance boots from it. It is still shown with the image of its launch."""
    instance = self.ec2_backend.get_instance(self._get_param("InstanceId"))
    image = self._get_param("ImageId")
    if image:
        self.ec2_backend.describe_images(ami_ids=[image])
    self.error_on_dryrun()
    now = utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")
    task = {
        "ReplaceRootVolumeTaskId": f"replacevol-{len(tasks):017x}",
        "InstanceId": instance.id,
        "TaskState": "succeeded",
        "StartTime": now,
        "CompleteTime": now,
        "ImageId": image or instance.image_id,
        "DeleteReplacedRootVolume": self._get_bool_param("DeleteReplacedRootVolume", False),
    }
    tasks[task["ReplaceRootVolumeTaskId"]] = task
    root_images[instance.id] = task["ImageId"]
    boots.setdefault(instance.id, []).append("replace")
    return ActionResult({"ReplaceRootVolumeTask": {**task, "TaskState": "pending", "CompleteTime": None}})


def describe_replace_root_volume_tasks(self):
    wanted = self._get_param("ReplaceRootVolumeTaskIds", [])
    instances = self._filters_from_querystring().get("instance-id")
    found = [
        task
        for name, task in tasks.items()
        if (not wanted or name in wanted) and (not instances or task["InstanceId"] in instances)
    ]
    return ActionResult({"ReplaceRootVolumeTasks": found})


def get_tags(self):
    """moto compares a resource's id with that of each tag there is, so that a listing of a thousand instances takes minutes."""
    if not self.id:
        return []
    kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(self.id), "")
    return [
        {"resource_id": self.id, "resource_type": kind, "key": key, "value": value}
        for key, value in self.ec2_backend.tags.get(self.id, {}).items()
    ]


def list_service_quotas(self):
    """One quota on each page."""
    page = int(json.loads(self.body).get("NextToken", 0))
    code, value = list(QUOTAS.items())[page]
    more = {"NextToken": str(page + 1)} if page + 1 < len(QUOTAS) else {}
    return json.dumps({"Quotas": [{"ServiceCode": "ec2", "QuotaCode": code, "Value": value}], **more})


def dress_images(region, architectures):
    """What RegisterImage takes and moto leaves out."""
    for index, (name, architecture) in enumerate(architectures.items()):
        image = ec2_backends[ACCOUNT][region].amis[name]
        image.architecture, image.virtualization_type, image.root_device_type = architecture, "hvm", "ebs"
        image.creation_date = image.creation_date.replace(year=2025, month=1 + index)


def add():
    """Changes moto's classes, before its server starts."""
    changes = [
        (InstanceBackend, "run_instances", run_instances),
        (InstanceResponse, "run_instances", with_most),
        (InstanceResponse, "describe_instances", describe_instances),
        (Instance, "__init__", booted("start")),
        (Instance, "start", booted("start")),
        (Instance, "reboot", booted("reboot")),
    ]
    for owner, name, wrap in changes:
        setattr(owner, name, wrap(getattr(owner, name)))
    EC2Response.create_replace_root_volume_task = create_replace_root_volume_task
    EC2Response.describe_replace_root_volume_tasks = describe_replace_root_volume_tasks
    ServiceQuotasResponse.list_service_quotas = list_service_quotas
    TaggedEC2Resource.get_tags = get_tags
