# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge to Ansible of the module of EC2: options in, exit_json or fail_json out.

Private to this collection.
"""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import fail, report
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import reconcile
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws import client_ec2
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.machines import (
    Machines,
    NoMachines,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.order import (
    ORDER_OPTIONS,
    order_from,
)

REFUSED = "refused by EC2"
LATE = "asked for, but not done yet"


def run() -> None:
    """Run the module aws_machines."""
    module = AnsibleModule(argument_spec=ORDER_OPTIONS, supports_check_mode=True)
    if client_ec2.IMPORT_ERROR:
        module.fail_json(msg=missing_required_lib("boto3"), exception=client_ec2.IMPORT_ERROR)
    seconds = module.params["operation_timeout"]
    try:
        client = client_ec2.Ec2Client(module.params["region"])
        kind = Machines if module.params["state"] == "present" else NoMachines
        resource = kind(client, order_from(module.params))
        resource.connect()
        outcome = reconcile(resource, module.check_mode, seconds)
    except AdminError as error:
        fail(module, error)
    else:
        report(module, outcome, seconds, failed=REFUSED, late=LATE, **resource.results(outcome))
