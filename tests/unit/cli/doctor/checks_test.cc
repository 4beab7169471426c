// SPDX-License-Identifier: Apache-2.0
// The checks of `rollcall doctor`, each in both directions: a good host, and each thing that is
// wrong.
#include "cli/doctor/checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

namespace rollcall::doctor {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kDay = 86400;

// A host on which everything works, with a daemon under TLS and the program of a job.
Facts GoodHost() {
  Facts facts;
  facts.user = 1000;
  facts.now_s = 1'800'000'000;
  facts.version = "0.1.0";
  facts.environment = {{"LD_PRELOAD", "/usr/lib/rollcall/librollcall.so"},
                       {"ROLLCALL_JOB", "llama"},
                       {"SLURM_JOB_ID", "17"},
                       {"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                       {"NODE_NAME", "node-1"},
                       {"POD_NAME", "pod-1"},
                       {"POD_NAMESPACE", "team"}};
  facts.library.path = "/usr/lib/rollcall/librollcall.so";
  facts.library.elf.is_elf = true;
  facts.library.load = Attempt::kWorked;
  facts.program.command = {"python", "train.py"};
  facts.program.path = "/usr/bin/python3";
  facts.program.machine = facts.program.elf.machine = "x86-64";
  facts.program.elf.is_elf = true;
  facts.program.elf.interpreter = "/lib64/ld-linux-x86-64.so.2";
  facts.nccl.files = {{"/site/nvidia/nccl/lib/libnccl.so.2", kPythonPackage, 22809}};
  facts.gloo.path = "/site/torch/lib/libtorch_cpu.so";
  facts.gloo.version = "2.13.0";
  facts.gloo.known = 35;
  facts.gloo.found = 34;
  facts.gloo.absent = {"ProcessGroupGloo::all_gather_single"};
  facts.folder.path = "/dev/shm/rollcall-1000";
  facts.folder.room.free_bytes = uint64_t{64} << 30;
  facts.shared_memory = {true, uint64_t{64} << 30, uint64_t{64} << 30};
  facts.tracing.of_child = facts.tracing.of_other = Attempt::kWorked;
  facts.tracing.ptrace_scope = 0;
  facts.kernel.kernel_log = Attempt::kWorked;
  facts.systemd.is_running = true;
  facts.agent.looked = Attempt::kWorked;
  facts.agent.is_running = true;
  facts.agent.directory = "/run/rollcall";
  facts.daemon.is_chosen = facts.daemon.has_tls = true;
  facts.daemon.address = "daemon:7655";
  facts.daemon.answer = DaemonAnswer::kAnswered;
  facts.daemon.version = "0.1.0";
  facts.daemon.own_expiry_s = facts.daemon.daemon_expiry_s = facts.now_s + 300 * kDay;
  facts.gpu.driver = "550.54.14";
  facts.gpu.devices = 8;
  facts.gpu.library = "/usr/lib/libcuda.so.1";
  facts.gpu.elf.has_marker_calls = true;
  return facts;
}

struct Case {
  const char* name;
  const char* id;
  std::function<void(Facts*)> change;
  State state;
  const char* what;  // a part of the sentence
  const char* next;  // a part of what to type
};

const State kOk = State::kOk, kWarning = State::kWarning, kProblem = State::kProblem,
            kNotApplicable = State::kNotApplicable;

const Case kCases[] = {
    {"not_found", "library", [](Facts* f) { f->library.path = ""; }, kProblem, "not in ../lib",
     "install"},
    {"damaged", "library", [](Facts* f) { f->library.elf.is_elf = false; }, kProblem, "damaged",
     "install"},
    {"refused_by_the_loader", "library",
     [](Facts* f) {
       f->library.load = Attempt::kFailed;
       f->library.said = "version `GLIBC_2.17' not found";
     },
     kProblem, "GLIBC_2.17", "LD_DEBUG=files"},
    {"trial_hangs", "library", [](Facts* f) { f->library.load = Attempt::kNoAnswer; }, kProblem,
     "did not end", "ls -l"},
    {"no_program_to_try", "library", [](Facts* f) { f->library.load = Attempt::kNotMade; },
     kNotApplicable, "no program to try", ""},
    {"musl_system", "library",
     [](Facts* f) {
       f->library.is_musl = true;
       f->program = {};
     },
     kProblem, "musl", "glibc 2.17"},
    {"musl_system_with_a_glibc_program", "library", [](Facts* f) { f->library.is_musl = true; },
     kOk, "loads", ""},

    {"unset", "preload", [](Facts* f) { f->environment.erase("LD_PRELOAD"); }, kNotApplicable,
     "`rollcall run` sets it", ""},
    {"missing_file", "preload",
     [](Facts* f) { f->missing_preloads = {"/usr/lib/rollcall/librollcall.so"}; }, kProblem,
     "not here", "export LD_PRELOAD="},
    {"other_missing_file", "preload",
     [](Facts* f) { f->missing_preloads = {"/lib/libjemalloc.so"}; }, kOk, "names /usr/lib", ""},
    {"twice", "preload",
     [](Facts* f) { f->environment["LD_PRELOAD"] = "/a/librollcall.so:/b/librollcall.so"; },
     kWarning, "2 times", "export LD_PRELOAD=/a/librollcall.so"},

    {"library_off", "switches", [](Facts* f) { f->environment["ROLLCALL"] = "0"; }, kProblem,
     "does nothing", "unset ROLLCALL"},
    {"stacks_off", "switches", [](Facts* f) { f->environment["ROLLCALL_STACKS"] = "No"; }, kWarning,
     "Rollcall takes no stacks", "unset ROLLCALL_STACKS"},
    {"switched_on", "switches", [](Facts* f) { f->environment["ROLLCALL"] = "1"; }, kOk,
     "no variable", ""},

    {"little_address_space", "limits", [](Facts* f) { f->kernel.address_space_bytes = 64 << 20; },
     kProblem, "address space", "ulimit -v"},
    {"much_address_space", "limits",
     [](Facts* f) { f->kernel.address_space_bytes = int64_t{1} << 46; }, kOk, "no limit", ""},
    {"small_files", "limits", [](Facts* f) { f->kernel.file_bytes = 1024; }, kProblem, "file sizes",
     "ulimit -f"},

    {"none", "program", [](Facts* f) { f->program = {}; }, kNotApplicable, "no program",
     "rollcall doctor"},
    {"unknown_command", "program",
     [](Facts* f) { f->program.error = "no such command on the PATH"; }, kProblem,
     "cannot run python", "command -v python"},
    {"no_elf", "program", [](Facts* f) { f->program.elf = {}; }, kProblem,
     "neither a program in ELF", "file "},
    {"other_processor", "program", [](Facts* f) { f->program.elf.machine = "aarch64"; }, kProblem,
     "another processor", "file "},
    {"static", "program", [](Facts* f) { f->program.elf.interpreter = ""; }, kProblem, "is static",
     "rollcall doctor PROGRAM"},
    {"static_with_nccl", "program",
     [](Facts* f) {
       f->program.elf.interpreter = "";
       f->program.elf.has_nccl = true;
     },
     kProblem, "NCCL is inside", "link it dynamically"},
    {"musl", "program", [](Facts* f) { f->program.elf.interpreter = "/lib/ld-musl-x86_64.so.1"; },
     kProblem, "records nothing", "glibc 2.17"},
    {"setuid", "program", [](Facts* f) { f->program.changes_user = true; }, kProblem,
     "ignores LD_PRELOAD", "chmod u-s"},
    {"file_capabilities", "program", [](Facts* f) { f->program.gains_capabilities = true; },
     kProblem, "ignores LD_PRELOAD", "setcap -r"},
    {"script_of_a_shell", "program",
     [](Facts* f) {
       f->program.is_shell = true;
       f->program.scripts = {"/job/train.sh"};
     },
     kNotApplicable, "/job/train.sh is a script", "rollcall doctor PYTHON"},
    {"script_of_python", "program", [](Facts* f) { f->program.scripts = {"/venv/bin/torchrun"}; },
     kOk, "by /venv/bin/torchrun", ""},

    {"none", "sanitizer", [](Facts* f) { f->program = {}; }, kNotApplicable, "no program", ""},
    {"address", "sanitizer", [](Facts* f) { f->program.elf.sanitizer = "address"; }, kProblem,
     "does not come first", "verify_asan_link_order=0"},
    {"address_permits_it", "sanitizer",
     [](Facts* f) {
       f->program.elf.sanitizer = "address";
       f->environment["ASAN_OPTIONS"] = "detect_leaks=0:verify_asan_link_order=0";
     },
     kOk, "accepts the library", ""},
    {"address_is_first", "sanitizer",
     [](Facts* f) {
       f->program.elf.sanitizer = "address";
       f->environment["LD_PRELOAD"] = "/lib/libasan.so.8:/b/librollcall.so";
     },
     kOk, "accepts the library", ""},
    {"thread", "sanitizer", [](Facts* f) { f->program.elf.sanitizer = "thread"; }, kOk, "accepts",
     ""},

    {"inside", "nccl", [](Facts* f) { f->nccl.inside = "/site/torch/lib/libtorch_cuda.so"; },
     kWarning, "static in /site/torch", "strings /site/torch"},
    {"missing", "nccl", [](Facts* f) { f->nccl.files.clear(); }, kWarning, "no libnccl.so.2",
     "pip install nvidia-nccl"},
    {"missing_without_gpu", "nccl",
     [](Facts* f) {
       f->nccl.files.clear();
       f->gpu = {};
     },
     kNotApplicable, "no libnccl.so.2", ""},
    {"search_path_hides_the_package", "nccl",
     [](Facts* f) {
       f->nccl.files.insert(f->nccl.files.begin(), {"/old/libnccl.so.2", kSearchPath, 21805});
     },
     kWarning, "NCCL 2.18.5, /old/libnccl.so.2 (LD_LIBRARY_PATH) comes before NCCL 2.28.9",
     "unset LD_LIBRARY_PATH"},
    {"system_behind_the_package", "nccl",
     [](Facts* f) { f->nccl.files.push_back({"/usr/lib/libnccl.so.2.18.5", kSystem, 21805}); }, kOk,
     "dynamic: NCCL 2.28.9", ""},
    {"python_hangs", "nccl", [](Facts* f) { f->program.python = Attempt::kNoAnswer; }, kWarning,
     "did not print its folders", "sys.path"},

    {"a_name_of_other_versions", "gloo", [](Facts*) {}, kOk,
     "found 34 of 35 functions of gloo in PyTorch 2.13.0 (/site/torch/lib/libtorch_cpu.so); "
     "not in this version: ProcessGroupGloo::all_gather_single",
     ""},
    {"new_arguments", "gloo",
     [](Facts* f) { f->gloo.changed = {"ProcessGroupGloo::reduce", "ProcessGroupGloo::send"}; },
     kWarning, "arguments are new: ProcessGroupGloo::reduce, ProcessGroupGloo::send",
     "newer release"},
    {"what_all_calls_need", "gloo", [](Facts* f) { f->gloo.lost = {"ProcessGroupGloo::enqueue"}; },
     kWarning,
     "missing, so that calls may lack their ends, names or messages: ProcessGroupGloo::enqueue",
     "newer release"},
    {"without_pytorch", "gloo", [](Facts* f) { f->gloo = {}; }, kNotApplicable, "no PyTorch", ""},
    {"pytorch_without_gloo", "gloo", [](Facts* f) { f->gloo.found = 0; }, kNotApplicable,
     "was built without gloo", ""},
    {"no_program", "gloo", [](Facts* f) { f->program = {}; }, kNotApplicable, "no program named",
     ""},

    {"other_plugin", "profiler-plugin",
     [](Facts* f) { f->environment["NCCL_PROFILER_PLUGIN"] = "inspector"; }, kWarning,
     "another plugin", "unset NCCL_PROFILER_PLUGIN"},
    {"other_plugin_of_a_static_nccl", "profiler-plugin",
     [](Facts* f) {
       f->environment["NCCL_PROFILER_PLUGIN"] = "inspector";
       f->nccl.inside = "/job/train";
     },
     kProblem, "another plugin", "unset NCCL_PROFILER_PLUGIN"},
    {"ours", "profiler-plugin",
     [](Facts* f) { f->environment["NCCL_PROFILER_PLUGIN"] = "/usr/lib/rollcall/librollcall.so"; },
     kOk, "names /usr/lib", ""},
    {"ours_and_an_old_nccl", "profiler-plugin",
     [](Facts* f) {
       f->environment["NCCL_PROFILER_PLUGIN"] = "/usr/lib/rollcall/librollcall.so";
       f->environment.erase("LD_PRELOAD");
       f->nccl.files[0].version = 22602;
     },
     kProblem, "NCCL 2.26.2 reports too little", "rollcall run"},

    {"no_answer", "folder", [](Facts* f) { f->folder.state = FolderState::kNoAnswer; }, kProblem,
     "does not answer", "export ROLLCALL_DIR"},
    {"cannot_be_made", "folder", [](Facts* f) { f->folder.state = FolderState::kNotMade; },
     kProblem, "cannot make", "export ROLLCALL_DIR"},
    {"link", "folder", [](Facts* f) { f->folder.state = FolderState::kNoFolder; }, kProblem,
     "is a link", "export ROLLCALL_DIR"},
    {"of_another_user", "folder",
     [](Facts* f) {
       f->folder.state = FolderState::kOtherUser;
       f->folder.owner = 7;
       f->folder.is_chosen = true;
     },
     kProblem, "belongs to user 7", "unset ROLLCALL_DIR"},
    {"read_only", "folder",
     [](Facts* f) {
       f->folder.state = FolderState::kNotWritable;
       f->folder.error = "Read-only file system";
     },
     kProblem, "Read-only file system", "export ROLLCALL_DIR"},
    {"usual_one_of_another_user", "folder", [](Facts* f) { f->folder.is_taken = true; }, kWarning,
     " belongs to another user: this user's segments are in ", "as root:  rm -rf"},
    {"on_a_file_server", "folder", [](Facts* f) { f->folder.server = "nfs"; }, kWarning,
     "file server (nfs)", "export ROLLCALL_DIR"},

    {"none_at_all", "room", [](Facts* f) { f->folder.room.free_bytes = 64 << 10; }, kProblem,
     "records nothing", "--shm-size"},
    {"little", "room", [](Facts* f) { f->folder.room.free_bytes = 12 << 20; }, kWarning,
     "fewer calls", "--shm-size"},
    {"unlimited", "room", [](Facts* f) { f->folder.room = {true, 0, 0, 0}; }, kOk,
     "no limit of size", ""},
    {"no_folder", "room", [](Facts* f) { f->folder.state = FolderState::kOtherUser; },
     kNotApplicable, "no usable folder", ""},

    {"none", "shared-memory", [](Facts* f) { f->shared_memory = {}; }, kProblem,
     "/dev/shm is missing", "mount -t"},
    {"full", "shared-memory", [](Facts* f) { f->shared_memory.free_bytes = 1 << 20; }, kProblem,
     "cannot create one", "--shm-size"},
    {"of_a_pod", "shared-memory", [](Facts* f) { f->shared_memory = {true, 64 << 20, 64 << 20}; },
     kWarning, "is little for 8 ranks", "--shm-size"},
    {"unlimited", "shared-memory", [](Facts* f) { f->shared_memory = {true, 0, 0}; }, kOk,
     "no limit", ""},

    {"removes", "remove-ipc", [](Facts* f) { f->systemd.removes_ipc = true; }, kWarning,
     "logind removes", "loginctl enable-linger"},
    {"system_user", "remove-ipc",
     [](Facts* f) {
       f->systemd.removes_ipc = true;
       f->user = 998;
     },
     kOk, "system users", ""},
    {"lingers", "remove-ipc", [](Facts* f) { f->systemd.removes_ipc = f->systemd.lingers = true; },
     kOk, "lingers", ""},
    {"no_systemd", "remove-ipc", [](Facts* f) { f->systemd.is_running = false; }, kNotApplicable,
     "systemd does not run", ""},
    {"other_folder", "remove-ipc", [](Facts* f) { f->folder.path = "/var/tmp/segments"; },
     kNotApplicable, "not in /dev/shm", ""},

    {"refused", "tracing",
     [](Facts* f) {
       f->tracing.of_child = f->tracing.of_other = Attempt::kFailed;
       f->tracing.reason =
           "cannot take the stacks of process 7: a seccomp filter\n  type this\n  or that";
     },
     kProblem, "traced: a seccomp filter. Stacks come from inside", "type this   or   or that"},
    {"only_children", "tracing",
     [](Facts* f) {
       f->tracing.of_other = Attempt::kFailed;
       f->tracing.reason = "cannot take the stacks of process 7: only a parent\n  sysctl";
     },
     kWarning, "did not start: only a parent", "sysctl"},
    {"not_tried", "tracing", [](Facts* f) { f->tracing.of_child = Attempt::kNotMade; }, kWarning,
     "could not try", "rollcall stacks"},

    {"none", "yama", [](Facts* f) { f->tracing.ptrace_scope = -1; }, kNotApplicable, "no Yama", ""},
    {"scope_1", "yama", [](Facts* f) { f->tracing.ptrace_scope = 1; }, kOk, "needs CAP_SYS_PTRACE",
     ""},
    {"scope_2", "yama", [](Facts* f) { f->tracing.ptrace_scope = 2; }, kProblem,
     "only CAP_SYS_PTRACE", "ptrace_scope=1"},
    {"scope_2_with_capability", "yama",
     [](Facts* f) {
       f->tracing.ptrace_scope = 2;
       f->agent.may_see_all = true;
     },
     kOk, "suffices", ""},
    {"scope_3", "yama",
     [](Facts* f) {
       f->tracing.ptrace_scope = 3;
       f->agent.may_see_all = true;
     },
     kProblem, "no process may trace", "boot again"},

    {"filter_in_the_way", "seccomp",
     [](Facts* f) {
       f->tracing.seccomp = 2;
       f->tracing.of_child = Attempt::kFailed;
     },
     kProblem, "tracing is refused", "seccomp=unconfined"},
    {"filter_permits_it", "seccomp", [](Facts* f) { f->tracing.seccomp = 2; }, kOk,
     "does not block tracing", ""},
    {"yama_explains_it", "seccomp",
     [](Facts* f) {
       f->tracing.seccomp = 2;
       f->tracing.ptrace_scope = 3;
       f->tracing.of_child = Attempt::kFailed;
     },
     kOk, "does not block tracing", ""},

    {"profile_in_the_way", "security-module",
     [](Facts* f) {
       f->tracing.profile = "docker-default (enforce)";
       f->tracing.of_child = Attempt::kFailed;
     },
     kProblem, "docker-default", "apparmor=unconfined"},
    {"profile_complains_only", "security-module",
     [](Facts* f) {
       f->tracing.profile = "docker-default (complain)";
       f->tracing.of_child = Attempt::kFailed;
     },
     kOk, "does not block tracing", ""},
    {"selinux", "security-module", [](Facts* f) { f->tracing.selinux_denies = true; }, kProblem,
     "deny_ptrace", "setsebool"},

    {"no_proc", "pid-namespace", [](Facts* f) { f->container.has_proc = false; }, kProblem,
     "not mounted", "mount -t proc"},
    {"foreign_proc", "pid-namespace", [](Facts* f) { f->container.is_foreign_proc = true; },
     kProblem, "another pid namespace", "--mount-proc"},
    {"of_its_own", "pid-namespace",
     [](Facts* f) {
       f->container.has_own_pids = true;
       f->container.kind = "docker";
     },
     kOk, "its own (docker)", ""},

    {"refused", "kernel-log", [](Facts* f) { f->kernel.kernel_log = Attempt::kFailed; }, kWarning,
     "no Xid line", "CAP_SYSLOG"},

    {"none", "gpu-driver", [](Facts* f) { f->gpu = {}; }, kNotApplicable, "no GPU driver", ""},
    {"amd", "gpu-driver",
     [](Facts* f) {
       f->gpu = {};
       f->gpu.is_amd = true;
     },
     kOk, "AMD", ""},
    {"no_gpu_in_the_container", "gpu-driver", [](Facts* f) { f->gpu.devices = 0; }, kProblem,
     "got no GPU", "--gpus=all"},
    {"no_permission", "gpu-driver", [](Facts* f) { f->gpu.device_error = "Permission denied"; },
     kProblem, "cannot open", "ls -l /dev/nvidiactl"},
    {"no_library", "gpu-driver", [](Facts* f) { f->gpu.library = ""; }, kProblem,
     "libcuda.so.1 is in no", "NVIDIA_DRIVER_CAPABILITIES"},

    {"no_driver", "markers", [](Facts* f) { f->gpu = {}; }, kNotApplicable, "no GPU markers", ""},
    {"old_driver", "markers", [](Facts* f) { f->gpu.elf.has_marker_calls = false; }, kWarning,
     "cuStreamWriteValue64_v2", "CUDA 11.7"},
    {"switched_off", "markers", [](Facts* f) { f->environment["ROLLCALL_MARKERS"] = "0"; },
     kWarning, "ROLLCALL_MARKERS=0", "unset ROLLCALL_MARKERS"},

    {"nobody_reads", "agent", [](Facts* f) { f->agent.is_running = false; }, kProblem,
     "no agent reads", "rollcall-agent --daemon=daemon:7655"},
    {"run_reads", "agent",
     [](Facts* f) {
       f->agent.is_running = false;
       f->environment["ROLLCALL_LOADED"] = "/dev/shm/x";
     },
     kNotApplicable, "starts its own", ""},
    {"folders_hang", "agent", [](Facts* f) { f->agent.looked = Attempt::kNoAnswer; }, kWarning,
     "do not answer", "ls /run/rollcall"},

    {"refuses", "daemon",
     [](Facts* f) {
       f->daemon.answer = DaemonAnswer::kRefused;
       f->daemon.error = "no token";
     },
     kProblem, "refuses this caller: no token", "--token-file"},
    {"unreachable", "daemon",
     [](Facts* f) {
       f->daemon.answer = DaemonAnswer::kUnreachable;
       f->daemon.error = "daemon:7655: connection refused";
     },
     kProblem, "cannot reach the daemon at daemon:7655: connection refused", "systemctl"},
    {"unreachable_and_not_named", "daemon",
     [](Facts* f) {
       f->daemon.answer = DaemonAnswer::kUnreachable;
       f->daemon.is_chosen = false;
     },
     kNotApplicable, "no daemon named", "--daemon="},
    {"wrong_flags", "daemon",
     [](Facts* f) {
       f->daemon.answer = DaemonAnswer::kWrongFlags;
       f->daemon.error = "ca.crt: no such file\n  ls ca.crt";
     },
     kProblem, "ca.crt: no such file", "ls ca.crt"},
    {"hangs", "daemon",
     [](Facts* f) {
       f->daemon.answer = DaemonAnswer::kNoAnswer;
       f->daemon.error = "no answer within 25 s";
     },
     kProblem, "no answer", "systemctl"},

    {"without_tls", "certificates", [](Facts* f) { f->daemon.has_tls = false; }, kNotApplicable,
     "no TLS", ""},
    {"own_expires_soon", "certificates",
     [](Facts* f) { f->daemon.own_expiry_s = f->now_s + 3 * kDay; }, kWarning,
     "this program's certificate expires in 3 days", "rollcall pki renew"},
    {"own_has_expired", "certificates",
     [](Facts* f) {
       f->daemon.own_expiry_s = f->now_s - 1;
       f->daemon.answer = DaemonAnswer::kUnreachable;
     },
     kProblem, "this program's certificate has expired", "rollcall pki renew"},
    {"daemons_expires_soon", "certificates",
     [](Facts* f) { f->daemon.daemon_expiry_s = f->now_s + kDay / 2; }, kWarning,
     "the daemon's certificate expires in 0 days", "rollcall pki renew"},
    {"no_answer", "certificates", [](Facts* f) { f->daemon.answer = DaemonAnswer::kUnreachable; },
     kNotApplicable, "no answer", ""},

    {"a_little_behind", "clock", [](Facts* f) { f->daemon.ahead_ns = -10 * kSecondNs; }, kWarning,
     "10.0 s behind", "set-ntp"},
    {"far_ahead", "clock", [](Facts* f) { f->daemon.ahead_ns = 3600 * kSecondNs; }, kProblem,
     "3600.0 s ahead of", "set-ntp"},
    {"slow_network_explains_it", "clock",
     [](Facts* f) {
       f->daemon.ahead_ns = 3 * kSecondNs;
       f->daemon.round_trip_ns = 4 * kSecondNs;
     },
     kOk, "agree", ""},
    {"no_daemon", "clock", [](Facts* f) { f->daemon.answer = DaemonAnswer::kNone; }, kNotApplicable,
     "", ""},

    {"other_series", "version", [](Facts* f) { f->daemon.version = "0.2.0"; }, kWarning,
     "daemon is of release 0.2.0", "pip install rollcall-0.2.0-*.whl"},
    {"same_series", "version", [](Facts* f) { f->daemon.version = "0.1.7"; }, kOk, "work together",
     ""},
    {"no_daemon", "version", [](Facts* f) { f->daemon.answer = DaemonAnswer::kNone; },
     kNotApplicable, "", ""},

    {"unnamed", "job-name",
     [](Facts* f) {
       f->environment.erase("ROLLCALL_JOB");
       f->environment.erase("SLURM_JOB_ID");
     },
     kWarning, "\"default\"", "export ROLLCALL_JOB"},
    {"of_a_shell", "job-name", [](Facts* f) { f->environment.clear(); }, kNotApplicable,
     "no variable", ""},
    {"by_slurm", "job-name", [](Facts* f) { f->environment.erase("ROLLCALL_JOB"); }, kOk,
     "called 17", ""},

    {"no_pod", "kubernetes", [](Facts* f) { f->environment.clear(); }, kNotApplicable,
     "not in a pod", ""},
    {"no_node", "kubernetes", [](Facts* f) { f->environment.erase("NODE_NAME"); }, kWarning,
     "NODE_NAME", "spec.nodeName"},
    {"small_memory", "kubernetes", [](Facts* f) { f->shared_memory.total_bytes = 64 << 20; },
     kWarning, "small /dev/shm", "emptyDir"},

    {"no_slurm", "slurm", [](Facts* f) { f->environment.clear(); }, kNotApplicable,
     "not in a Slurm job", ""},
    {"prolog_and_pyxis", "slurm",
     [](Facts* f) {
       f->slurm.task_prolog = "/etc/slurm/prolog.sh";
       f->slurm.has_pyxis = true;
     },
     kProblem, "inside the containers of pyxis", "enroot"},
    {"prolog_without_pyxis", "slurm",
     [](Facts* f) { f->slurm.task_prolog = "/etc/slurm/prolog.sh"; }, kOk, "Slurm job 17", ""},
    {"plugin_without_file", "slurm",
     [](Facts* f) {
       f->slurm.plugin = "/usr/lib/rollcall/slurm/spank_rollcall.so";
       f->slurm.has_plugin_file = false;
     },
     kWarning, "which is not on this host", "build.sh /usr/lib/rollcall/slurm/spank_rollcall.so"},
    {"plugin", "slurm",
     [](Facts* f) {
       f->slurm.plugin = "/usr/lib/rollcall/slurm/spank_rollcall.so";
       f->slurm.has_plugin_file = true;
     },
     kOk, "srun --rollcall preloads the library", ""},
    {"private_memory", "slurm",
     [](Facts* f) {
       f->slurm.job_container = "job_container/tmpfs";
       f->agent.is_running = false;
     },
     kWarning, "deletes when the job ends", "rollcall-agent"},
    {"private_memory_and_an_agent", "slurm",
     [](Facts* f) { f->slurm.job_container = "job_container/tmpfs"; }, kOk, "Slurm job 17", ""},
};

const Judgement& Of(const std::vector<Finding>& findings, const std::string& id) {
  const auto at = std::find_if(findings.begin(), findings.end(),
                               [&](const Finding& finding) { return finding.id == id; });
  if (at == findings.end()) throw std::out_of_range(id);
  return at->judgement;
}

class ChecksTest : public testing::TestWithParam<Case> {};

TEST_P(ChecksTest, Judges) {
  const Case& c = GetParam();
  Facts facts = GoodHost();
  c.change(&facts);
  const Judgement judgement = Of(Examine(facts), c.id);
  EXPECT_EQ(NameOf(judgement.state), NameOf(c.state)) << judgement.what;
  EXPECT_NE(judgement.what.find(c.what), std::string::npos) << judgement.what;
  EXPECT_NE(judgement.next.find(c.next), std::string::npos) << judgement.next;
}

INSTANTIATE_TEST_SUITE_P(Checks, ChecksTest, testing::ValuesIn(kCases), [](const auto& row) {
  std::string name = std::string(row.param.id) + "_" + row.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

bool IsWrong(State state) { return state == kWarning || state == kProblem; }

TEST(DoctorTest, AGoodHostHasNeitherProblemNorWarning) {
  for (const Finding& finding : Examine(GoodHost())) {
    EXPECT_FALSE(IsWrong(finding.judgement.state)) << finding.id << ": " << finding.judgement.what;
  }
}

TEST(DoctorTest, EveryCheckIsGoodOnAGoodHost) {
  for (const Finding& finding : Examine(GoodHost())) {
    EXPECT_EQ(NameOf(finding.judgement.state), "ok")
        << finding.id << ": " << finding.judgement.what;
  }
}

TEST(DoctorTest, EveryCheckHasACaseInWhichSomethingIsWrong) {
  std::set<std::string> wrong;
  for (const Case& c : kCases) {
    if (IsWrong(c.state)) wrong.insert(c.id);
  }
  for (const std::string& id : CheckNames()) EXPECT_EQ(wrong.count(id), 1u) << id;
}

TEST(DoctorTest, WhatIsWrongComesWithWhatToType) {
  for (const Case& c : kCases) {
    Facts facts = GoodHost();
    c.change(&facts);
    for (const Finding& finding : Examine(facts)) {
      EXPECT_FALSE(finding.judgement.what.empty()) << finding.id;
      if (IsWrong(finding.judgement.state)) {
        EXPECT_FALSE(finding.judgement.next.empty()) << finding.id;
      }
    }
  }
}

TEST(DoctorTest, OnlyProblemsMakeTheExitCode) {
  Facts facts = GoodHost();
  facts.folder.server = "nfs";
  EXPECT_FALSE(HasProblem(Examine(facts)));
  facts.library.path = "";
  EXPECT_TRUE(HasProblem(Examine(facts)));
}

}  // namespace
}  // namespace rollcall::doctor
