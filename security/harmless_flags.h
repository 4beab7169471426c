// SPDX-License-Identifier: Apache-2.0
// Which arguments of a command line are known to be harmless: one table of flags, and one of the
// programs that start another one. All others stay on the host (harmless_arguments.h).
#pragma once

namespace rollcall {

// What the value of a harmless flag must look like. A value of another form stays on the host: it
// is not what the flag is for.
enum class ValueForm {
  kNumber,    // "8", "-1", "3e-4", "1:4", "0,1,2", "64x8"; also "auto", "true", "none" and the like
  kWord,      // lower-case letters and digits, as in "bfloat16", "nccl", "1f1b", "c10d"
  kEndpoint,  // a host, with or without a port: "node-17:29500", "[::1]:0"
};

struct HarmlessFlag {
  const char* name;  // without dashes in front, "-" for "_"
  ValueForm form;
};

// Taken from the help of torchrun, accelerate, DeepSpeed, Megatron-LM, the Trainer of Hugging Face,
// vLLM, SGLang, mpirun and srun. A flag belongs here only if no user would give it a secret, a name
// of a person, or a path.
inline constexpr HarmlessFlag kHarmlessFlags[] = {
    // Launchers.
    {"nnodes", ValueForm::kNumber},
    {"nproc-per-node", ValueForm::kNumber},
    {"nproc", ValueForm::kNumber},
    {"node-rank", ValueForm::kNumber},
    {"max-restarts", ValueForm::kNumber},
    {"monitor-interval", ValueForm::kNumber},
    {"start-method", ValueForm::kWord},
    {"rdzv-backend", ValueForm::kWord},
    {"rdzv-endpoint", ValueForm::kEndpoint},
    {"master-addr", ValueForm::kEndpoint},
    {"master-port", ValueForm::kNumber},
    {"main-process-ip", ValueForm::kEndpoint},
    {"main-process-port", ValueForm::kNumber},
    {"machine-rank", ValueForm::kNumber},
    {"num-machines", ValueForm::kNumber},
    {"num-processes", ValueForm::kNumber},
    {"num-cpu-threads-per-process", ValueForm::kNumber},
    {"mixed-precision", ValueForm::kWord},
    {"num-gpus", ValueForm::kNumber},
    {"num-nodes", ValueForm::kNumber},
    {"np", ValueForm::kNumber},
    {"npernode", ValueForm::kNumber},
    {"ppn", ValueForm::kNumber},
    {"bind-to", ValueForm::kWord},
    {"ntasks", ValueForm::kNumber},
    {"ntasks-per-node", ValueForm::kNumber},
    {"cpus-per-task", ValueForm::kNumber},
    {"gpus-per-node", ValueForm::kNumber},
    {"gpus-per-task", ValueForm::kNumber},
    {"nodes", ValueForm::kNumber},
    {"mpi", ValueForm::kWord},
    // Ranks and places.
    {"rank", ValueForm::kNumber},
    {"local-rank", ValueForm::kNumber},
    {"world-size", ValueForm::kNumber},
    {"local-world-size", ValueForm::kNumber},
    {"device", ValueForm::kNumber},
    {"devices", ValueForm::kNumber},
    {"gpus", ValueForm::kNumber},
    {"accelerator", ValueForm::kWord},
    {"strategy", ValueForm::kWord},
    {"backend", ValueForm::kWord},
    {"dist-backend", ValueForm::kWord},
    {"distributed-backend", ValueForm::kWord},
    {"distributed-executor-backend", ValueForm::kWord},
    {"distributed-timeout-minutes", ValueForm::kNumber},
    {"ddp-timeout", ValueForm::kNumber},
    {"ddp-backend", ValueForm::kWord},
    {"port", ValueForm::kNumber},
    {"host", ValueForm::kEndpoint},
    {"dist-init-addr", ValueForm::kEndpoint},
    {"nccl-port", ValueForm::kNumber},
    // How the model is divided.
    {"tensor-model-parallel-size", ValueForm::kNumber},
    {"pipeline-model-parallel-size", ValueForm::kNumber},
    {"num-layers-per-virtual-pipeline-stage", ValueForm::kNumber},
    {"context-parallel-size", ValueForm::kNumber},
    {"expert-model-parallel-size", ValueForm::kNumber},
    {"expert-tensor-parallel-size", ValueForm::kNumber},
    {"tensor-parallel-size", ValueForm::kNumber},
    {"pipeline-parallel-size", ValueForm::kNumber},
    {"data-parallel-size", ValueForm::kNumber},
    {"data-parallel-size-local", ValueForm::kNumber},
    {"data-parallel-rank", ValueForm::kNumber},
    {"sequence-parallel-size", ValueForm::kNumber},
    {"ulysses-sequence-parallel-size", ValueForm::kNumber},
    {"expert-parallel-size", ValueForm::kNumber},
    {"tp", ValueForm::kNumber},
    {"pp", ValueForm::kNumber},
    {"dp", ValueForm::kNumber},
    {"cp", ValueForm::kNumber},
    {"ep", ValueForm::kNumber},
    {"tp-size", ValueForm::kNumber},
    {"pp-size", ValueForm::kNumber},
    {"dp-size", ValueForm::kNumber},
    {"ep-size", ValueForm::kNumber},
    {"zero-stage", ValueForm::kNumber},
    {"sharding-strategy", ValueForm::kWord},
    {"fsdp", ValueForm::kWord},
    {"num-experts", ValueForm::kNumber},
    {"moe-token-dispatcher-type", ValueForm::kWord},
    {"recompute-granularity", ValueForm::kWord},
    {"recompute-method", ValueForm::kWord},
    {"recompute-num-layers", ValueForm::kNumber},
    // Sizes.
    {"batch-size", ValueForm::kNumber},
    {"micro-batch-size", ValueForm::kNumber},
    {"global-batch-size", ValueForm::kNumber},
    {"per-device-train-batch-size", ValueForm::kNumber},
    {"per-device-eval-batch-size", ValueForm::kNumber},
    {"gradient-accumulation-steps", ValueForm::kNumber},
    {"num-layers", ValueForm::kNumber},
    {"hidden-size", ValueForm::kNumber},
    {"ffn-hidden-size", ValueForm::kNumber},
    {"num-attention-heads", ValueForm::kNumber},
    {"num-query-groups", ValueForm::kNumber},
    {"seq-length", ValueForm::kNumber},
    {"max-seq-length", ValueForm::kNumber},
    {"max-seq-len", ValueForm::kNumber},
    {"max-position-embeddings", ValueForm::kNumber},
    {"max-model-len", ValueForm::kNumber},
    {"context-length", ValueForm::kNumber},
    {"max-num-seqs", ValueForm::kNumber},
    {"max-num-batched-tokens", ValueForm::kNumber},
    {"max-running-requests", ValueForm::kNumber},
    {"max-tokens", ValueForm::kNumber},
    {"block-size", ValueForm::kNumber},
    {"gpu-memory-utilization", ValueForm::kNumber},
    {"mem-fraction-static", ValueForm::kNumber},
    {"swap-space", ValueForm::kNumber},
    {"num-workers", ValueForm::kNumber},
    {"workers", ValueForm::kNumber},
    {"dataloader-num-workers", ValueForm::kNumber},
    // Lengths and rates.
    {"epochs", ValueForm::kNumber},
    {"num-epochs", ValueForm::kNumber},
    {"num-train-epochs", ValueForm::kNumber},
    {"steps", ValueForm::kNumber},
    {"max-steps", ValueForm::kNumber},
    {"num-steps", ValueForm::kNumber},
    {"train-iters", ValueForm::kNumber},
    {"train-samples", ValueForm::kNumber},
    {"eval-iters", ValueForm::kNumber},
    {"eval-interval", ValueForm::kNumber},
    {"eval-steps", ValueForm::kNumber},
    {"log-interval", ValueForm::kNumber},
    {"logging-steps", ValueForm::kNumber},
    {"save-interval", ValueForm::kNumber},
    {"save-steps", ValueForm::kNumber},
    {"warmup-steps", ValueForm::kNumber},
    {"lr-warmup-iters", ValueForm::kNumber},
    {"warmup-ratio", ValueForm::kNumber},
    {"lr", ValueForm::kNumber},
    {"min-lr", ValueForm::kNumber},
    {"learning-rate", ValueForm::kNumber},
    {"weight-decay", ValueForm::kNumber},
    {"clip-grad", ValueForm::kNumber},
    {"max-grad-norm", ValueForm::kNumber},
    {"dropout", ValueForm::kNumber},
    {"lr-decay-style", ValueForm::kWord},
    {"optimizer", ValueForm::kWord},
    // Kinds of numbers.
    {"dtype", ValueForm::kWord},
    {"torch-dtype", ValueForm::kWord},
    {"precision", ValueForm::kWord},
    {"kv-cache-dtype", ValueForm::kWord},
    {"quantization", ValueForm::kWord},
    {"bf16", ValueForm::kNumber},
    {"fp16", ValueForm::kNumber},
    {"fp8", ValueForm::kWord},
};

// A program whose arguments name another one: an interpreter's script, a launcher's program.
struct Starter {
  const char* name;  // the program, or the module of `python -m`; "python3.11" is "python"
  // Its own flags in front of what it starts, separated by blanks. A flag in none of these lists
  // has one value, unless the value is in the same argument.
  const char* switches;        // without a value
  const char* two_values;      // with two
  const char* numbers;         // short ones whose value is a harmless number
  const char* module;          // the next argument names a module, which is sent as a program is
  const char* code;            // the next argument is the program itself, which stays on the host
  const char* commands;        // words that may stand in front of the program
  bool starts_program = true;  // false: only its commands are words that are sent
};

inline constexpr Starter kStarters[] = {
    {"python", "-u -B -E -s -S -O -OO -I -v -q -b -bb -d -i -x -P -Wignore -Werror", "", "", "-m",
     "-c", ""},
    {"pypy", "-u -B -E -s -S -O -OO -I -v -q -b -d -i -x", "", "", "-m", "-c", ""},
    {"bash", "-e -x -u -l -i -ex -eu -eux -xe", "", "", "", "-c", ""},
    {"sh", "-e -x -u -l -i -ex -eu -eux", "", "", "", "-c", ""},
    {"torchrun", "--standalone --no-python --no_python --run-path --run_path", "", "",
     "-m --module", "", ""},
    {"torch.distributed.run", "--standalone --no-python --no_python --run-path --run_path", "", "",
     "-m --module", "", ""},
    {"torch.distributed.launch", "--use-env --use_env --standalone --no-python --no_python", "", "",
     "-m --module", "", ""},
    {"accelerate",
     "--multi-gpu --multi_gpu --use-deepspeed --use_deepspeed --use-fsdp --use_fsdp --cpu "
     "--no-python --no_python -q --quiet",
     "", "", "-m --module", "", "launch"},
    {"deepspeed", "--no_python --no-python --no_local_rank --force_multi", "", "", "--module", "",
     ""},
    {"deepspeed.launcher.launch", "--no_python --no-python --no_local_rank --enable_each_rank_log",
     "", "", "--module", "", ""},
    {"vllm", "", "", "", "", "", "serve bench chat complete", false},
    {"sglang", "", "", "", "", "", "serve", false},
    {"ray", "", "", "", "", "", "start job", false},
    {"mpirun",
     "--oversubscribe --allow-run-as-root --report-bindings --tag-output --verbose -v -q --quiet "
     "--display-map --nolocal",
     "--mca -mca --gmca --prtemca -genv -env", "-n -np -c -N -ppn -npernode", "", "", ""},
    {"mpiexec",
     "--oversubscribe --allow-run-as-root --report-bindings --tag-output --verbose -v -q --quiet",
     "--mca -mca -genv -env", "-n -np -c -N -ppn", "", "", ""},
    {"srun", "-l --label -u --unbuffered -v -vv -Q --quiet --exclusive --overlap -s -K --pty", "",
     "-n -N -c -G", "", "", ""},
    {"env", "-i -", "", "", "", "", ""},
    {"nohup", "", "", "", "", "", ""},
    {"numactl", "--localalloc -l --all", "", "", "", "", ""},
};

}  // namespace rollcall
