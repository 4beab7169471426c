# SPDX-License-Identifier: Apache-2.0
"""The paths on the machine with the GPU, and the settings by which several ranks share it."""
import glob
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "build" / "gpu-bundle"
SIM = os.environ.get("ROLLCALL_GPU_SIM")  # a build, whose simulated libraries stand in

# A host of its own for each rank, as far as NCCL knows, and sockets between them; from NCCL 2.30 on
# there is a switch. (NCCL's init.cc: ranks of one host must have GPUs of their own.)
ONE_GPU = {
    "CUDA_VISIBLE_DEVICES": "0", "NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_NET": "Socket",
    "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1", "NCCL_NVLS_ENABLE": "0", "NCCL_CUMEM_ENABLE": "0",
    "NCCL_MNNVL_ENABLE": "0", "NCCL_MAX_CTAS": "1", "NCCL_NET_PLUGIN": "none",
    "NCCL_RAS_ENABLE": "0",
}
WITH_OWN_HOST_ID = ["bash", "-c", 'NCCL_HOSTID=rank$RANK exec "$0" "$@"']


def missing(what, *hints):
    print(f"tests/gpu: {what}", *(f"  {hint}" for hint in hints), sep="\n", file=sys.stderr)
    sys.exit(2)


def find_one(patterns, what):
    for pattern in patterns:
        found = sorted(glob.glob(pattern))
        if found:
            return pathlib.Path(found[-1])
    missing(f"{what} is not there", "looked for:", *patterns)


class Machine:
    """Paths, and the environment of jobs."""

    def __init__(self, out):
        self.out = pathlib.Path(out).resolve()
        self.programs = self.out / "programs"
        self.programs.mkdir(parents=True, exist_ok=True)
        if SIM:
            build = pathlib.Path(SIM)
            self.rollcall, self.daemon, self.agent = (
                [str(build / "bin" / name)] for name in ("rollcall", "rollcalld", "rollcall-agent"))
            self.library = build / "lib" / "librollcall.so"
            self.environment = {"LD_LIBRARY_PATH": str(build / "sim")}
            self.nccl, self.cudart = build / "sim" / "libnccl.so.2", None
            self.nccl_include = ROOT / "build" / "headers" / "nvidia" / "nccl" / "include"
            self.cuda_include = find_one(["/usr/local/cuda/include",
                                        f"{ROOT}/build/headers/nvidia/*/include"],
                                       "cuda_runtime_api.h")
            self.cudart = find_one([f"{build}/sim/libcudart.so.*"], "libcudart.so")
            return
        site = pathlib.Path(self._torch_site())
        self.nccl = find_one([f"{site}/nvidia/nccl/lib/libnccl.so.2"], "PyTorch's libnccl.so.2")
        self.nccl_include = self.nccl.parents[1] / "include"
        self.cudart = find_one([f"{site}/nvidia/*/lib/libcudart.so.1[0-9]"],
                               "PyTorch's libcudart.so")
        # A wheel may have cuda_runtime_api.h without this header, which it includes.
        header = "include/crt/host_defines.h"
        self.cuda_include = find_one(
            [f"{self.cudart.parents[1]}/{header}", f"/usr/local/cuda/{header}"],
            "CUDA's crt/host_defines.h").parents[1]
        self.rollcall, self.daemon, self.agent = (
            self._launcher(name) for name in ("rollcall", "rollcalld", "rollcall-agent"))
        self.library = BUNDLE / "lib" / "librollcall.so"
        self.environment = {
            **ONE_GPU, "LD_LIBRARY_PATH": f"{self.nccl.parent}:{self.cudart.parent}"}

    def _launcher(self, name):
        """The program with libraries of its own, which must not reach the job."""
        launcher = self.programs / name
        launcher.write_text("#!/bin/sh\n"
                            f'exec env ROLLCALL_JOB_PATH="$LD_LIBRARY_PATH" LD_LIBRARY_PATH={BUNDLE}/needed '
                            f'{BUNDLE}/bin/{name} "$@"\n')
        launcher.chmod(0o755)
        return [str(launcher)]

    @staticmethod
    def _torch_site():
        found = subprocess.run(
            [sys.executable, "-c", "import torch, pathlib; assert torch.version.cuda; "
                                   "print(pathlib.Path(torch.__file__).parents[1])"],
            capture_output=True, text=True)
        if found.returncode != 0:
            missing("PyTorch for CUDA is not there", found.stderr.strip().splitlines()[-1])
        return found.stdout.strip()

    def compile(self, source, name=None):
        """A program of this source, against the NCCL and CUDA runtime that PyTorch brought."""
        program = self.programs / (name or pathlib.Path(source).stem)
        subprocess.run(
            ["g++", "-std=c++17", "-O2", "-pthread", f"-I{ROOT}", f"-I{self.nccl_include}",
             f"-I{self.cuda_include}", "-o", program, ROOT / source, self.nccl, self.cudart, "-ldl"],
            check=True)
        return program

    def environ(self, more=None):
        return {**os.environ, **self.environment, **(more or {})}

    def in_job(self, command):
        """The command as a rank runs it: with its own host's name, and the job's own libraries."""
        if SIM:
            return [str(part) for part in command]
        path = 'LD_LIBRARY_PATH="${ROLLCALL_JOB_PATH:-$LD_LIBRARY_PATH}" '
        return ["bash", "-c", path + WITH_OWN_HOST_ID[2], *(str(part) for part in command)]

    def facts(self):
        """On what the checks run, for programs."""
        facts = {"python": sys.version.split()[0], "nccl": str(self.nccl), "is_simulated": bool(SIM), "gpus": []}
        if not SIM and shutil.which("nvidia-smi"):
            query = "--query-gpu=name,driver_version,compute_mode,mig.mode.current"
            said = subprocess.run(["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True)
            facts["gpus"] = said.stdout.strip().splitlines()
        return facts

    def about(self):
        facts = self.facts()
        return "\n".join([f"python {facts['python']}, NCCL {facts['nccl']}", *facts["gpus"]])
