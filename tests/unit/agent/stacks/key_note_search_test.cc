// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/key_note_search.h"

#include <gtest/gtest.h>

#include <cstring>

#include "interpose/key_note.h"

namespace rollcall {
namespace {

constexpr uint64_t kBase = 0x7fff0000;
constexpr uint64_t kNoteAt = kBase + 64;
constexpr uint64_t kStackBytes = 1024;

KeyNote Note(const std::string& first, const std::string& last, uint64_t keys) {
  KeyNote note = {{kKeyNoteMagic[0], kKeyNoteMagic[1]}, keys, {}, {}};
  memcpy(note.first, first.data(), first.size());
  memcpy(note.last, last.data(), last.size());
  return note;
}

RawThread Thread(const KeyNote& note) {
  RawThread thread;
  thread.stack_base = kBase;
  thread.stack.assign(kStackBytes, 0);
  memcpy(thread.stack.data() + (kNoteAt - kBase), &note, sizeof(note));
  return thread;
}

Frame At(const char* module, uint64_t stack_pointer) {
  Frame frame;
  frame.module = module;
  frame.stack_pointer = stack_pointer;
  return frame;
}

std::vector<Frame> Frames(uint64_t from, uint64_t to, const char* module = "/x/librollcall.so") {
  return {At("/lib/libc.so.6", kBase), At(module, from), At("/x/libtorch.so", to),
          At("/bin/python", kBase + kStackBytes)};
}

TEST(KeyNoteSearchTest, ANoteInAFrameOfTheLibraryIsTheKey) {
  const RawThread thread = Thread(Note("settings", "settings", 1));
  EXPECT_EQ(FindNotedKey(thread, Frames(kBase + 16, kBase + 512)), "settings");
}

TEST(KeyNoteSearchTest, OfSeveralKeysTheFirstAndTheLastAreNamed) {
  const RawThread thread = Thread(Note("ready/0", "ready/3", 4));
  EXPECT_EQ(FindNotedKey(thread, Frames(kBase + 16, kBase + 512)), "ready/0 ... ready/3 (4 keys)");
}

// What an earlier call has left behind.
TEST(KeyNoteSearchTest, ANoteOutsideOfTheLibrarysFrameDoesNotCount) {
  const RawThread thread = Thread(Note("settings", "settings", 1));
  EXPECT_EQ(FindNotedKey(thread, Frames(kNoteAt + 8, kBase + 512)), "");
  EXPECT_EQ(FindNotedKey(thread, Frames(kBase + 16, kNoteAt)), "");
  EXPECT_EQ(FindNotedKey(thread, Frames(kBase + 16, kBase + 512, "/x/libother.so")), "");
}

TEST(KeyNoteSearchTest, ANoteThatTheCopyOfTheStackCutsDoesNotCount) {
  RawThread thread = Thread(Note("settings", "settings", 1));
  thread.stack.resize(kNoteAt - kBase + sizeof(KeyNote) - 1);
  EXPECT_EQ(FindNotedKey(thread, Frames(kBase + 16, kBase + 512)), "");
  thread.stack.clear();
  EXPECT_EQ(FindNotedKey(thread, Frames(kBase + 16, kBase + 512)), "");
}

TEST(KeyNoteSearchTest, StackPointersOfNoStackGiveNoKey) {
  const RawThread thread = Thread(Note("settings", "settings", 1));
  EXPECT_EQ(FindNotedKey(thread, Frames(0, UINT64_MAX)), "");
  EXPECT_EQ(FindNotedKey(thread, Frames(kBase + 17, kBase + 512)), "");
  EXPECT_EQ(FindNotedKey(thread, Frames(kBase + kStackBytes + 8, UINT64_MAX)), "");
  EXPECT_EQ(FindNotedKey(thread, {}), "");
}

TEST(KeyNoteSearchTest, ATextWithoutAnEndAndAnOddNumberOfKeysHaveLimits) {
  KeyNote note = Note("", "", UINT64_MAX);
  memset(note.first, 'x', sizeof(note.first));
  const std::string key = FindNotedKey(Thread(note), Frames(kBase + 16, kBase + 512));
  EXPECT_EQ(key.find("xx"), std::string::npos) << "it was cut, and may be a part of a secret";
  EXPECT_EQ(key.substr(0, 3), "...");
}

TEST(KeyNoteSearchTest, AKeyThatTheLibraryHasCutLosesItsFirstWord) {
  const std::string path = "/ready/3";
  const KeyNote note = Note(std::string(sizeof(note.first) - 1 - path.size(), '7') + path, "", 1);
  EXPECT_EQ(FindNotedKey(Thread(note), Frames(kBase + 16, kBase + 512)), "..." + path);
}

TEST(KeyNoteSearchTest, LongKeysThatEndAlikeStayDifferent) {
  const std::string rest(sizeof(KeyNote::first) - 1 - 9 - 8, '7');
  const auto key = [&rest](const std::string& number) {
    const KeyNote note = Note(number + rest + "/ready/3", "", 1);
    return FindNotedKey(Thread(note), Frames(kBase + 16, kBase + 512));
  };
  EXPECT_EQ(key("#1a2b3c4d"), "... (1a2b3c4d)/ready/3");
  EXPECT_EQ(key("#5e6f7a8b"), "... (5e6f7a8b)/ready/3");
  EXPECT_EQ(key("#5e6f7a8x"), ".../ready/3") << "no number of the library";
}

}  // namespace
}  // namespace rollcall
