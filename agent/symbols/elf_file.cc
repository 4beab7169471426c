// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/elf_file.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

constexpr uint64_t kPageSize = 16384;
constexpr size_t kMaxPages = 1024;
constexpr size_t kMaxProgramHeaders = 256;
constexpr size_t kMaxNoteBytes = 16384;
constexpr size_t kMaxBuildIdBytes = 64;

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#else
constexpr uint16_t kMachine = EM_AARCH64;
#endif

// The encodings that all linkers write (DWARF's DW_EH_PE_*): pc-relative sdata4, udata4, and
// data-relative sdata4 for the table itself.
constexpr uint8_t kVersion = 1;
constexpr uint8_t kPcRelSdata4 = 0x1b;
constexpr uint8_t kUdata4 = 0x03;
constexpr uint8_t kDataRelSdata4 = 0x3b;
constexpr size_t kTableEntryBytes = 8;

struct EhFrameHeader {
  uint8_t version;
  uint8_t frame_encoding;
  uint8_t count_encoding;
  uint8_t table_encoding;
  int32_t frame;
  uint32_t count;
};
static_assert(sizeof(EhFrameHeader) == 12);

size_t AlignNote(size_t size) { return (size + 3) & ~size_t{3}; }

}  // namespace

absl::StatusOr<std::shared_ptr<ElfFile>> ElfFile::Open(UniqueFd fd, std::string name, FileId id) {
  std::shared_ptr<ElfFile> file(new ElfFile(std::move(fd), std::move(name), id));
  const absl::Status status = file->ReadHeaders();
  if (!status.ok()) return status;
  return file;
}

absl::Status ElfFile::ReadHeaders() {
  Elf64_Ehdr header;
  if (!ReadOffset(0, &header, sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != kMachine ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return absl::InvalidArgumentError(absl::StrCat(name_, " is not an ELF file of this machine"));
  }
  const size_t count = std::min<size_t>(header.e_phnum, kMaxProgramHeaders);
  std::vector<Elf64_Phdr> segments(count);
  if (!ReadOffset(header.e_phoff, segments.data(), count * sizeof(Elf64_Phdr))) {
    return absl::InvalidArgumentError(absl::StrCat(name_, " is truncated"));
  }
  for (const Elf64_Phdr& entry : segments) {
    const Segment segment{entry.p_offset, entry.p_vaddr, entry.p_filesz};
    if (entry.p_type == PT_LOAD) loads_.push_back(segment);
    if (entry.p_type == PT_NOTE && build_id_.empty()) ReadBuildId(segment);
    if (entry.p_type == PT_GNU_EH_FRAME) ReadUnwindTable(segment);
  }
  return absl::OkStatus();
}

void ElfFile::ReadBuildId(const Segment& note) {
  std::vector<char> bytes(std::min<uint64_t>(note.file_size, kMaxNoteBytes));
  if (!ReadOffset(note.offset, bytes.data(), bytes.size())) return;
  size_t at = 0;
  while (bytes.size() - at >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, &bytes[at], sizeof(header));
    at += sizeof(header);
    const size_t name_size = AlignNote(header.n_namesz);
    const size_t size = AlignNote(header.n_descsz);
    if (name_size > bytes.size() - at || size > bytes.size() - at - name_size) return;
    const absl::string_view name(&bytes[at], header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID && name == absl::string_view("GNU\0", 4) &&
        header.n_descsz <= kMaxBuildIdBytes) {
      build_id_ = absl::BytesToHexString({bytes.data() + at + name_size, header.n_descsz});
      return;
    }
    at += name_size + size;
  }
}

void ElfFile::ReadUnwindTable(const Segment& header) {
  EhFrameHeader fields;
  if (header.file_size < sizeof(fields) || !ReadOffset(header.offset, &fields, sizeof(fields)) ||
      fields.version != kVersion || fields.frame_encoding != kPcRelSdata4 ||
      fields.count_encoding != kUdata4 || fields.table_encoding != kDataRelSdata4 ||
      fields.count > (header.file_size - sizeof(fields)) / kTableEntryBytes) {
    return;
  }
  unwind_table_ = UnwindTable{header.address, header.address + sizeof(fields), fields.count};
}

std::optional<uint64_t> ElfFile::AddressOfOffset(uint64_t offset) const {
  for (const Segment& load : loads_) {
    if (offset >= load.offset && offset - load.offset < load.file_size) {
      return load.address + (offset - load.offset);
    }
  }
  return std::nullopt;
}

const std::vector<uint8_t>& ElfFile::Page(uint64_t index) {
  const auto found = pages_.find(index);
  if (found != pages_.end()) return found->second;
  if (pages_.size() >= kMaxPages) pages_.clear();
  SetFileInUse(id_);
  std::vector<uint8_t> page(kPageSize);
  const ssize_t count =
      pread(fd_.get(), page.data(), page.size(), static_cast<off_t>(index * kPageSize));
  page.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return pages_.emplace(index, std::move(page)).first->second;
}

bool ElfFile::ReadOffset(uint64_t offset, void* data, size_t size) {
  if (offset > INT64_MAX - kPageSize) return false;
  uint8_t* to = static_cast<uint8_t*>(data);
  while (size > 0) {
    const std::vector<uint8_t>& page = Page(offset / kPageSize);
    const size_t at = offset % kPageSize;
    if (at >= page.size()) return false;
    const size_t count = std::min(size, page.size() - at);
    std::memcpy(to, page.data() + at, count);
    to += count;
    offset += count;
    size -= count;
  }
  return true;
}

}  // namespace rollcall
