# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the connection options; the code is in module_utils/admin/argspec.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  bootstrap_servers:
    description:
      - Brokers to ask first, each as C(host:port), IPv6 as C([::1]:9092); a list, or one text
        separated by commas.
      - If not given, the environment variable E(KAFKA_BOOTSTRAP_SERVERS) is used.
    type: list
    elements: str
    required: true
  security_protocol:
    description:
      - What the listener speaks.
      - If not given, the environment variable E(KAFKA_SECURITY_PROTOCOL) is used.
    type: str
    choices: [PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL]
    default: PLAINTEXT
  sasl_mechanism:
    description:
      - How to log in; needed with C(SASL_PLAINTEXT) and C(SASL_SSL).
      - If not given, the environment variable E(KAFKA_SASL_MECHANISM) is used.
    type: str
    choices: [PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER]
  sasl_username:
    description:
      - User name. Not a secret, so it may appear in output. With C(OAUTHBEARER) the client's id at the OpenID provider.
      - If not given, the environment variable E(KAFKA_SASL_USERNAME) is used.
    type: str
  sasl_password:
    description:
      - Password of O(sasl_username). With C(OAUTHBEARER) the client's secret.
      - If not given, the environment variable E(KAFKA_SASL_PASSWORD) is used.
    type: str
  sasl_token_url:
    description:
      - With C(OAUTHBEARER), the token endpoint of the OpenID provider. It is asked by the client credentials grant.
      - If not given, the environment variable E(KAFKA_SASL_TOKEN_URL) is used.
    type: str
  sasl_token_ca:
    description:
      - Certificates that the provider's certificate is checked against, as PEM text or as a path.
      - If not given, the environment variable E(KAFKA_SASL_TOKEN_CA) is used, then the system's own.
    type: str
  sasl_scope:
    description:
      - With C(OAUTHBEARER), the scope that is asked for; several are separated by spaces.
      - If not given, the environment variable E(KAFKA_SASL_SCOPE) is used.
    type: str
  ssl_ca:
    description:
      - Certificates that the brokers' certificates are checked against, as PEM text or as a path.
      - If not given, the environment variable E(KAFKA_SSL_CA) is used, then the system's own.
    type: str
  ssl_certificate:
    description:
      - The client's certificate, as PEM text or as a path; with O(ssl_key).
      - If not given, the environment variable E(KAFKA_SSL_CERTIFICATE) is used.
    type: str
  ssl_key:
    description:
      - The client's private key, as PEM text or as a path; with O(ssl_certificate).
      - If not given, the environment variable E(KAFKA_SSL_KEY) is used.
    type: str
  ssl_key_password:
    description:
      - Password of O(ssl_key), if it has one.
      - If not given, the environment variable E(KAFKA_SSL_KEY_PASSWORD) is used.
    type: str
  ssl_check_hostname:
    description:
      - Whether the certificate must name the host that was connected to.
      - If not given, the environment variable E(KAFKA_SSL_CHECK_HOSTNAME) is used.
    type: bool
    default: true
  timeout:
    description:
      - Seconds within which the cluster must be reached, and each single reading must be answered.
      - If not given, the environment variable E(KAFKA_TIMEOUT) is used.
    type: float
    default: 30.0
  cluster_id:
    description:
      - The cluster id that is expected. Any other cluster is refused.
    type: str
requirements:
  - confluent-kafka >= 2.3 on the host that runs the module
  - kafka-python >= 3.0.12 on the host that runs the module
"""
