"""Serves one of OpenStack's APIs, or the whole of Nova, on a socket that is inherited and listens already.

    serve.py keystone|glance|placement|neutron|nova RUN FD
"""
import datetime
import os
import pathlib
import signal
import socket
import sys

service, run, descriptor = sys.argv[1], sys.argv[2], int(sys.argv[3])
here = os.path.dirname(os.path.realpath(__file__))
sys.argv = [service]
os.chdir(run)
for name in ('KEYSTONE', 'GLANCE', 'PLACEMENT', 'NEUTRON', 'NOVA'):
    os.environ[f'OS_{name}_CONFIG_DIR'] = f'{run}/etc'
os.environ['OS_NEUTRON_CONFIG_FILES'] = 'neutron.conf'
os.environ['HYPERVISOR'] = f'{run}/hypervisor'


def keystone():
    from keystone.token import provider
    from keystone.wsgi.api import application
    from oslo_utils import timeutils
    plain = provider.default_expire_time
    order = pathlib.Path(run, 'token-life')

    def steered():
        # The life of the tokens that are made now, in seconds.
        if not order.exists():
            return plain()
        return timeutils.utcnow() + datetime.timedelta(seconds=int(order.read_text()))
    provider.default_expire_time = steered
    return application


def glance():
    from glance.wsgi.api import application
    return application


def placement():
    from placement.wsgi.api import application
    return application


def neutron():
    from neutron.db.migration.models import head  # noqa: F401
    from neutron.wsgi.api import application
    from sqlalchemy import orm
    # A listing of ports fails as long as no other query has tied the models together.
    orm.configure_mappers()
    return application


def nova():
    """Conductor, scheduler, compute and API in one process: their messages go from thread to thread."""
    import nova.conf
    import nova.virt
    import os_vif
    from nova import config, context, objects
    from nova.api.openstack import wsgi_app
    from nova.compute import rpcapi as compute
    from nova.conductor import rpcapi as conductor
    from nova.objects import host_mapping
    from nova.scheduler import rpcapi as scheduler
    from nova.service import Service
    from oslo_log import log
    from oslo_service import opts
    from paste import deploy

    # Drivers are looked for there and nowhere else.
    nova.virt.__path__.append(f'{here}/plugins/steered')
    conf = nova.conf.CONF
    config.parse_args(['nova'], default_config_files=[f'{run}/etc/nova.conf'])
    log.setup(conf, 'nova')
    opts.register_service_opts(conf)
    objects.register_all()
    os_vif.initialize()
    for binary, topic, more in (('nova-conductor', conductor.RPC_TOPIC, {}), ('nova-scheduler', scheduler.RPC_TOPIC, {}),
                                ('nova-compute', compute.RPC_TOPIC, {'topic_alt': compute.RPC_TOPIC_ALT})):
        part = Service.create(binary=binary, topic=topic, **more)
        part.start()
        _parts.append(part)
    host_mapping.discover_hosts(context.get_admin_context())
    wsgi_app._setup_service(conf.host, 'osapi_compute')
    return deploy.loadapp(f'config:{conf.wsgi.api_paste_config}', name='osapi_compute')


_parts = []
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
if service == 'nova':
    from nova import monkey_patch
    monkey_patch.patch(backend='threading')
import patient_sqlite  # noqa: E402,F401
import waitress  # noqa: E402

application = {'keystone': keystone, 'glance': glance, 'placement': placement, 'neutron': neutron,
               'nova': nova}[service]()
waitress.serve(application, sockets=[socket.socket(fileno=descriptor)], threads=8,
               clear_untrusted_proxy_headers=False)
