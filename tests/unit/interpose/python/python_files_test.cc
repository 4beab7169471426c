// SPDX-License-Identifier: Apache-2.0
#include "interpose/python/python_files.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

TEST(PythonFilesTest, LibrariesAreNotTheProgram) {
  for (const char* file : {
           "/usr/lib/python3.11/runpy.py",
           "<frozen runpy>",
           "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py",
           "/usr/lib/python3/dist-packages/numpy/core/fromnumeric.py",
           "/build/uvloop/loop.pyx",
           "<eval_with_key>.3",
           "<__array_function__ internals>",
       }) {
    EXPECT_TRUE(IsPythonLibraryFile(file)) << file;
  }
}

TEST(PythonFilesTest, LaunchersAndTheLibrarysOwnCodeAreNotTheProgram) {
  for (const char* file : {"/opt/venv/bin/torchrun", "/opt/venv/bin/accelerate",
                           "/opt/venv/bin/deepspeed", kOwnPythonFile}) {
    EXPECT_TRUE(IsPythonLibraryFile(file)) << file;
  }
}

TEST(PythonFilesTest, ScriptsAndTypedCodeAreTheProgram) {
  for (const char* file :
       {"train.py", "/home/me/bin/train", "/workspace/rollcall/train.py", "<string>", "<stdin>",
        "<command-4092>", "<console>", "<ipython-input-1>", "/home/me/bin/torchrun_jobs/train.py",
        "/data/bin/accelerate-demo/train.py", "/home/me/bin/deepspeed_train.py"}) {
    EXPECT_FALSE(IsPythonLibraryFile(file)) << file;
  }
}

}  // namespace
}  // namespace rollcall
