"""Nova's fake hypervisor, steered by files.

Before each step it reads DIR/STEP (or DIR/STEP-NAME, for the server of that name alone), where DIR is the run's
`hypervisor` directory and STEP is spawn, rebuild, destroy or reboot. A line `delay 2.5` lets it take that many seconds, or
until the file is removed; a line `error TEXT` makes it fail. Each boot of a server adds a line to DIR/boots-ID that says
how it came about: spawn, rebuild, reboot SOFT, reboot HARD or power_on.
"""
import io
import os
import pathlib
import time
import uuid

from nova import exception
from nova.image import glance
from nova.virt import fake

_ORDERS = pathlib.Path(os.environ['HYPERVISOR'])


def _wait(seconds, order):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and order.exists():
        time.sleep(0.05)


def _obey(step, instance):
    for name in (step, f'{step}-{instance.display_name}'):
        path = _ORDERS / name
        try:
            orders = path.read_text().splitlines()
        except FileNotFoundError:
            continue
        for order in orders:
            verb, _, rest = order.partition(' ')
            if verb == 'delay':
                _wait(float(rest), path)
            elif verb == 'error':
                raise exception.BuildAbortException(instance_uuid=instance.uuid, reason=rest)


def _booted(instance, how):
    with open(_ORDERS / f'boots-{instance.uuid}', 'a') as boots:
        boots.write(f'{how}\n')


def _node_id(name):
    # The plain driver's ids are new in every process, and Nova refuses to come back with another.
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


class SteeredDriver(fake.FakeDriver):
    def spawn(self, context, instance, *args, **kwargs):
        # A rebuild spawns too.
        step = 'rebuild' if instance.task_state == 'rebuild_spawning' else 'spawn'
        _obey(step, instance)
        super().spawn(context, instance, *args, **kwargs)
        _booted(instance, step)

    def destroy(self, context, instance, *args, **kwargs):
        _obey('destroy', instance)
        super().destroy(context, instance, *args, **kwargs)

    def reboot(self, context, instance, network_info, reboot_type, *args, **kwargs):
        _obey('reboot', instance)
        super().reboot(context, instance, network_info, reboot_type, *args, **kwargs)
        _booted(instance, f'reboot {reboot_type}')

    def power_on(self, context, instance, *args, **kwargs):
        super().power_on(context, instance, *args, **kwargs)
        # The plain driver's reboot is a power_on.
        if not (instance.task_state or '').startswith('reboot'):
            _booted(instance, 'power_on')

    def snapshot(self, context, instance, image_id, update_task_state):
        super().snapshot(context, instance, image_id, update_task_state)
        service, image_id = glance.get_remote_image_service(context, image_id)
        properties = {'status': 'active', 'disk_format': 'raw', 'container_format': 'bare', 'properties': {}}
        service.update(context, image_id, properties, io.BytesIO(b'a disk'), purge_props=False)

    def get_available_resource(self, nodename):
        return super().get_available_resource(nodename) | {'uuid': _node_id(nodename)}

    def get_nodenames_by_uuid(self, refresh=False):
        return {_node_id(name): name for name in self.get_available_nodes()}
