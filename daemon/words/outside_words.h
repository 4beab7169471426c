// SPDX-License-Identifier: Apache-2.0
// What the stacks of a culprit show beside its line, in words.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/verdict.h"

namespace rollcall {

// "rank 3 is handling ValueError: bad shard (`load_shard` (data.py:40))".
std::string ExceptionInWords(const RankException& handled);

// "thread "prefetch" of rank 3 ended with ValueError: bad shard at data.py:40".
std::string ThreadFailureInWords(const Culprit& culprit);

// "its processes 123 and 124 work", "the processes that it starts work", "it receives 12.5 kB a
// second".
std::string WorkInWords(const RankOutside& outside);

// "rank 0 waits at a socket for rank 3, which waits for it".
std::string SocketInWords(const RankSocket& socket);

// "thread "uploads" of rank 2 in `send_files` (train.py:40), waiting in Queue.get, keeps its
// process alive".
std::string KeeperInWords(const RankKeeper& keeper);

// All of these, for the end of a sentence: "; rank 3 is handling ...". "" if there are none.
std::string OutsideInWords(const Verdict& verdict);

}  // namespace rollcall
