"""Oracle's datasource, unchanged, on a machine that is a container: only the look at the chassis tag is left out, which
cloud-init skips in containers."""
from cloudinit import sources
from cloudinit.sources.DataSourceOracle import DataSourceOracle


class DataSourceOracleContainer(DataSourceOracle):
    def _is_platform_viable(self) -> bool:
        return True


def get_datasource_list(depends):
    return sources.list_from_depends(
        depends, [(DataSourceOracleContainer, (sources.DEP_FILESYSTEM,))]
    )
