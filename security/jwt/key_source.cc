// SPDX-License-Identifier: Apache-2.0
#include "security/jwt/key_source.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/mutex.h"
#include "base/steady_clock.h"
#include "base/watched_file.h"

namespace rollcall {
namespace {

constexpr int64_t kUsualS = 600;
constexpr int64_t kSoonS = 30;
constexpr std::chrono::seconds kLookEvery{1};

}  // namespace

bool FetchSchedule::IsDue(int64_t now_s, bool is_wanted) const {
  if (!has_tried_) return true;
  return now_s - last_s_ >= (is_wanted || !worked_ ? kSoonS : kUsualS);
}

void FetchSchedule::RecordFetch(int64_t now_s, bool worked) {
  has_tried_ = true;
  worked_ = worked;
  last_s_ = now_s;
}

ReadKeys ReadKeysFromFile(const std::string& path) {
  return [file = std::make_shared<WatchedFile>(path)]() -> absl::StatusOr<std::string> {
    absl::StatusOr<std::optional<std::string>> text = file->ReadIfChanged();
    if (!text.ok()) return text.status();
    if (text->has_value() && (*text)->empty()) {
      return absl::InvalidArgumentError(absl::StrCat(file->path(), " is empty"));
    }
    return text->value_or("");
  };
}

ReadKeys ReadKeysFromUrl(const KeyLocation& location) {
  return [location]() -> absl::StatusOr<std::string> {
    absl::StatusOr<std::string> text = FetchKeys(location);
    if (!text.ok() || !text->empty()) return text;
    return absl::InvalidArgumentError(absl::StrCat(location.url, " answers with nothing"));
  };
}

struct KeySource::State {
  const ReadKeys read;
  const bool is_file;
  FetchSchedule schedule;  // of the thread

  Mutex mutex;
  Condition has_ended;
  std::shared_ptr<const KeySet> keys ABSL_GUARDED_BY(mutex);
  absl::Status status ABSL_GUARDED_BY(mutex);       // of the last try
  absl::Status text_status ABSL_GUARDED_BY(mutex);  // of the last text
  bool is_wanted ABSL_GUARDED_BY(mutex) = false;

  State(ReadKeys read_keys, bool file) : read(std::move(read_keys)), is_file(file) {}

  // Returns whether the try worked.
  bool Try() {
    const absl::StatusOr<std::string> text = read();
    if (text.ok() && !text->empty()) Use(KeySet::Parse(*text));
    const MutexLock lock(mutex);
    status = text.ok() ? text_status : text.status();
    return status.ok();
  }

  void Use(absl::StatusOr<KeySet> set) {
    const MutexLock lock(mutex);
    text_status = set.status();
    if (set.ok()) {
      keys = std::make_shared<const KeySet>(*std::move(set));
    } else {
      text_status = absl::InvalidArgumentError(
          absl::StrCat("--jwks is not a usable JSON Web Key Set: ", text_status.message()));
    }
  }

  // The thread calls this each second.
  void Look() {
    const int64_t now_s = SteadyNs() / kSecond;
    bool is_due = is_file;
    {
      const MutexLock lock(mutex);
      is_due = is_due || schedule.IsDue(now_s, is_wanted);
      if (is_due) is_wanted = false;
    }
    if (is_due) schedule.RecordFetch(now_s, Try());
  }
};

KeySource::KeySource(ReadKeys read, bool is_file)
    : state_(std::make_shared<State>(std::move(read), is_file)) {
  if (is_file) state_->Try();  // so that the first status is there at once
  worker_.Repeat([state = state_] {
    state->Look();
    return kLookEvery;
  });
}

std::unique_ptr<KeySource> KeySource::Watch(ReadKeys read) {
  return std::unique_ptr<KeySource>(new KeySource(std::move(read), /*is_file=*/true));
}

std::unique_ptr<KeySource> KeySource::Fetch(ReadKeys read) {
  return std::unique_ptr<KeySource>(new KeySource(std::move(read), /*is_file=*/false));
}

KeySource::~KeySource() { worker_.Finish(SteadyTime(), Worker::Waiting::kDrop); }

std::shared_ptr<const KeySet> KeySource::keys() const {
  const MutexLock lock(state_->mutex);
  return state_->keys;
}

absl::Status KeySource::status() const {
  const MutexLock lock(state_->mutex);
  return state_->status;
}

void KeySource::WantNewKeys() {
  const MutexLock lock(state_->mutex);
  state_->is_wanted = true;
}

}  // namespace rollcall
