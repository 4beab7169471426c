# SPDX-License-Identifier: Apache-2.0
"""Signs service account tokens as the API server of Kubernetes does, for the tests."""
import base64
import hashlib
import json
import subprocess
import time

ISSUER = "https://kubernetes.default.svc.cluster.local"


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class SigningKey:
    """An RSA key of an API server, in a file that the openssl program makes."""

    def __init__(self, folder, name):
        self.file = folder / f"{name}.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048",
                        "-out", self.file], check=True, capture_output=True)
        modulus = subprocess.run(["openssl", "rsa", "-in", self.file, "-noout", "-modulus"],
                                 check=True, capture_output=True, text=True).stdout
        self.modulus = bytes.fromhex(modulus.strip().removeprefix("Modulus="))
        self.id = base64url(hashlib.sha256(self.modulus).digest())  # as in Kubernetes, a digest

    def public(self):
        return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.id,
                "n": base64url(self.modulus), "e": "AQAB"}

    def sign(self, message):
        return subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.file], check=True,
                              input=message, capture_output=True).stdout

    def token(self, subject, audience="rollcall", expires_in=3600, node="node-7", issuer=ISSUER,
              **header):
        """A token as the kubelet mounts it into a pod (serviceAccountToken, projected)."""
        _, _, namespace, account = subject.split(":")
        now = int(time.time())
        claims = {"iss": issuer, "sub": subject, "aud": [audience], "iat": now - 3600,
                  "nbf": now - 3600, "exp": now + expires_in,
                  "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": account},
                                    "pod": {"name": f"{account}-0"}, "node": {"name": node}}}
        head = {"alg": "RS256", "kid": self.id, **header}
        message = ".".join(base64url(json.dumps(part).encode()) for part in (head, claims))
        signature = b"" if head["alg"] == "none" else self.sign(message.encode())
        return f"{message}.{base64url(signature)}"


def key_set(*keys):
    return json.dumps({"keys": [key.public() for key in keys]})
