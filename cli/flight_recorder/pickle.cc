// SPDX-License-Identifier: Apache-2.0
#include "cli/flight_recorder/pickle.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rollcall {
namespace {

using nlohmann::json;

constexpr size_t kMostNodes = 20'000'000;
constexpr int kMostPickleDepth = 32;
constexpr uint32_t kMark = UINT32_MAX;  // an entry of the stack

// What the result may hold; a repeated value counts each time. PyTorch repeats frames and names by
// references of two to five bytes, so a real dump grows, but in proportion to its size.
struct Budget {
  explicit Budget(size_t file_bytes)
      : values(std::min(kMostNodes, 65'536 + 16 * file_bytes)),
        text_bytes(std::min(size_t{1} << 30, (size_t{4} << 20) + 256 * file_bytes)) {}

  size_t values;
  size_t text_bytes;
};

// One value. The format refers to earlier values by number, so the nodes form a graph until
// Build() copies them.
struct Node {
  enum class Kind : uint8_t { kNull, kBool, kInt, kFloat, kText, kList, kDict };
  Kind kind = Kind::kNull;
  int64_t number = 0;
  double real = 0;
  std::string text;
  std::vector<uint32_t> items;  // of a dict: key, value, key, value
};

struct Refused {
  unsigned char code;
  const char* name;
};

// Opcodes that import, build or call something.
constexpr Refused kRefused[] = {
    {'c', "GLOBAL"},    {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},
    {'b', "BUILD"},     {'i', "INST"},          {'o', "OBJ"},
    {0x81, "NEWOBJ"},   {0x92, "NEWOBJ_EX"},    {'P', "PERSID"},
    {'Q', "BINPERSID"}, {0x82, "EXT1"},         {0x83, "EXT2"},
    {0x84, "EXT4"},     {0x97, "NEXT_BUFFER"},  {0x98, "READONLY_BUFFER"},
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  absl::StatusOr<json> Read() {
    while (status_.ok() && !stopped_) {
      opcode_at_ = at_;
      unsigned char code = 0;
      if (Take(1)) {
        code = static_cast<unsigned char>(bytes_[at_ - 1]);
        Do(code);
      }
    }
    if (stack_.size() != 1 || stack_[0] == kMark) Wrong("the data does not end in one value");
    if (!status_.ok()) return status_;
    json result;
    Budget left(bytes_.size());
    if (!Build(stack_[0], 0, &left, &result)) return status_;
    return result;
  }

 private:
  void Wrong(const std::string& what) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat("byte ", opcode_at_, ": ", what));
  }

  // Moves past the next `n` bytes. False if the file ends before.
  bool Take(uint64_t n) {
    if (n > bytes_.size() - at_) {
      Wrong("the file ends here, in the middle of a value");
      return false;
    }
    at_ += n;
    return true;
  }

  // Reads a little-endian number of `bytes` bytes.
  uint64_t Number(size_t bytes) {
    if (!Take(bytes)) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value |= uint64_t{static_cast<unsigned char>(bytes_[at_ - bytes + i])} << (8 * i);
    }
    return value;
  }

  Node* Push(Node::Kind kind) {
    if (nodes_.size() >= kMostNodes) {
      Wrong("more values than the limit for a dump");
      nodes_.resize(1);
    }
    stack_.push_back(static_cast<uint32_t>(nodes_.size()));
    nodes_.emplace_back();
    nodes_.back().kind = kind;
    return &nodes_.back();
  }
  void PushInt(int64_t value) { Push(Node::Kind::kInt)->number = value; }
  void PushBool(bool value) { Push(Node::Kind::kBool)->number = value; }
  void PushText(uint64_t size) {
    if (Take(size)) Push(Node::Kind::kText)->text = bytes_.substr(at_ - size, size);
  }

  void PushLong(uint64_t size) {
    if (size > 8) {
      if (Take(size)) Wrong("an integer of more than 64 bits");
      return;
    }
    uint64_t value = Number(size);
    const bool negative = size > 0 && size < 8 && ((value >> (8 * size - 1)) & 1) != 0;
    if (negative) value |= ~uint64_t{0} << (8 * size);
    PushInt(static_cast<int64_t>(value));
  }

  void PushDouble() {
    if (!Take(8)) return;
    uint64_t value = 0;
    for (size_t i = 0; i < 8; ++i) {
      value = value << 8 | static_cast<unsigned char>(bytes_[at_ - 8 + i]);
    }
    std::memcpy(&Push(Node::Kind::kFloat)->real, &value, sizeof(value));
  }

  // Removes the values above the newest mark, and the mark. Returns the values.
  std::vector<uint32_t> PopToMark() {
    std::vector<uint32_t> items;
    while (!stack_.empty() && stack_.back() != kMark) {
      items.push_back(stack_.back());
      stack_.pop_back();
    }
    if (stack_.empty()) {
      Wrong("a mark is missing");
      return {};
    }
    stack_.pop_back();
    return {items.rbegin(), items.rend()};
  }

  std::vector<uint32_t> Pop(size_t n) {
    if (stack_.size() < n) {
      Wrong("a value is missing");
      return {};
    }
    std::vector<uint32_t> items(stack_.end() - static_cast<std::ptrdiff_t>(n), stack_.end());
    stack_.resize(stack_.size() - n);
    for (const uint32_t item : items) {
      if (item == kMark) Wrong("a mark where a value should be");
    }
    return items;
  }

  void PushItems(Node::Kind kind, std::vector<uint32_t> items) {
    Push(kind)->items = std::move(items);
  }

  void AddItems(Node::Kind kind, const std::vector<uint32_t>& items) {
    if (!status_.ok()) return;
    const bool fits =
        !stack_.empty() && stack_.back() != kMark && nodes_[stack_.back()].kind == kind;
    if (!fits || (kind == Node::Kind::kDict && items.size() % 2 != 0)) {
      Wrong("items for a value that cannot hold any");
      return;
    }
    std::vector<uint32_t>& all = nodes_[stack_.back()].items;
    all.insert(all.end(), items.begin(), items.end());
  }

  void Put(uint64_t number) {
    if (stack_.empty() || stack_.back() == kMark) {
      Wrong("nothing to remember");
    } else {
      memo_[number] = stack_.back();
    }
  }

  void Get(uint64_t number) {
    const auto at = memo_.find(number);
    if (at == memo_.end()) {
      Wrong("refers to a value that does not exist");
    } else {
      stack_.push_back(at->second);
    }
  }

  void Do(unsigned char code) {
    switch (code) {
      case 0x80:  // PROTO
        if (Number(1) > 5) Wrong("a newer pickle protocol than 5");
        return;
      case 0x95:  // FRAME
        Number(8);
        return;
      case '.':
        stopped_ = true;
        return;
      case '(':
        stack_.push_back(kMark);
        return;
      case '0':  // POP
        if (!stack_.empty()) stack_.pop_back();
        return;
      case 'N':
        Push(Node::Kind::kNull);
        return;
      case 0x88:
      case 0x89:
        PushBool(code == 0x88);
        return;
      default:
        if (!DoNumber(code) && !DoText(code) && !DoContainer(code) && !DoMemo(code)) Refuse(code);
    }
  }

  bool DoNumber(unsigned char code) {
    switch (code) {
      case 'J':
        PushInt(static_cast<int32_t>(Number(4)));
        return true;
      case 'K':
        PushInt(static_cast<int64_t>(Number(1)));
        return true;
      case 'M':
        PushInt(static_cast<int64_t>(Number(2)));
        return true;
      case 0x8a:
        PushLong(Number(1));
        return true;
      case 0x8b:
        PushLong(Number(4));
        return true;
      case 'G':
        PushDouble();
        return true;
      default:
        return false;
    }
  }

  bool DoText(unsigned char code) {
    switch (code) {
      case 'X':  // BINUNICODE
      case 'T':  // BINSTRING
      case 'B':  // BINBYTES
        PushText(Number(4));
        return true;
      case 0x8c:  // SHORT_BINUNICODE
      case 'U':   // SHORT_BINSTRING
      case 'C':   // SHORT_BINBYTES
        PushText(Number(1));
        return true;
      case 0x8d:  // BINUNICODE8
      case 0x8e:  // BINBYTES8
        PushText(Number(8));
        return true;
      default:
        return false;
    }
  }

  bool DoContainer(unsigned char code) {
    switch (code) {
      case '}':
        Push(Node::Kind::kDict);
        return true;
      case ']':
      case ')':
        Push(Node::Kind::kList);
        return true;
      case 't':  // TUPLE
      case 'l':  // LIST
        PushItems(Node::Kind::kList, PopToMark());
        return true;
      case 0x85:
      case 0x86:
      case 0x87:  // TUPLE1 to TUPLE3
        PushItems(Node::Kind::kList, Pop(code - 0x84u));
        return true;
      case 'a':  // APPEND
        AddItems(Node::Kind::kList, Pop(1));
        return true;
      case 'e':  // APPENDS
        AddItems(Node::Kind::kList, PopToMark());
        return true;
      case 's':  // SETITEM
        AddItems(Node::Kind::kDict, Pop(2));
        return true;
      case 'u':  // SETITEMS
        AddItems(Node::Kind::kDict, PopToMark());
        return true;
      default:
        return false;
    }
  }

  bool DoMemo(unsigned char code) {
    switch (code) {
      case 'q':
        Put(Number(1));
        return true;
      case 'r':
        Put(Number(4));
        return true;
      case 0x94:  // MEMOIZE
        Put(memo_.size());
        return true;
      case 'h':
        Get(Number(1));
        return true;
      case 'j':
        Get(Number(4));
        return true;
      default:
        return false;
    }
  }

  void Refuse(unsigned char code) {
    for (const Refused& refused : kRefused) {
      if (refused.code != code) continue;
      Wrong(absl::StrCat(refused.name, " could run code: refused"));
      return;
    }
    Wrong(absl::StrFormat("opcode 0x%02x is not allowed: it is not plain data", code));
  }

  bool Spend(int depth, const std::string& text, Budget* left) {
    if (depth > kMostPickleDepth) {
      Wrong("values are nested too deeply");
    } else if (left->values == 0) {
      Wrong("more values than the limit for a dump");
    } else if (left->text_bytes < text.size()) {
      Wrong("more text than the limit for a dump");
    } else {
      --left->values;
      left->text_bytes -= text.size();
      return true;
    }
    return false;
  }

  // kMostPickleDepth limits the recursion. A value that contains itself exceeds this depth.
  bool Build(uint32_t index, int depth, Budget* left, json* out) {
    const Node& node = nodes_[index];
    if (!Spend(depth, node.text, left)) return false;
    switch (node.kind) {
      case Node::Kind::kNull:
        return true;
      case Node::Kind::kBool:
        *out = node.number != 0;
        return true;
      case Node::Kind::kInt:
        *out = node.number;
        return true;
      case Node::Kind::kFloat:
        *out = node.real;
        return true;
      case Node::Kind::kText:
        *out = node.text;
        return true;
      case Node::Kind::kList:
        *out = json::array();
        for (const uint32_t item : node.items) {
          out->push_back(nullptr);
          if (!Build(item, depth + 1, left, &out->back())) return false;
        }
        return true;
      case Node::Kind::kDict:
        *out = json::object();
        for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
          const std::string key = MakeKey(node.items[i]);
          if (!Spend(depth, key, left)) return false;
          if (!Build(node.items[i + 1], depth + 1, left, &(*out)[key])) return false;
        }
        return true;
    }
    return false;
  }

  std::string MakeKey(uint32_t index) const {
    const Node& node = nodes_[index];
    if (node.kind == Node::Kind::kText) return node.text;
    return node.kind == Node::Kind::kInt ? std::to_string(node.number) : "?";
  }

  const std::string& bytes_;
  size_t at_ = 0, opcode_at_ = 0;
  bool stopped_ = false;
  absl::Status status_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> stack_;
  std::map<uint64_t, uint32_t> memo_;
};

}  // namespace

absl::StatusOr<nlohmann::json> ReadPickle(const std::string& bytes) { return Reader(bytes).Read(); }

}  // namespace rollcall
