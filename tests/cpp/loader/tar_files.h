// Tar archives made byte by byte, for tests of what reads them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>

#include "checks/read_at.h"

namespace tar_files {

constexpr size_t kBlock = 512;

inline std::string padded(std::string bytes) {
  bytes.resize((bytes.size() + kBlock - 1) / kBlock * kBlock);
  return bytes;
}

inline std::string octal(uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(value));
  return text;
}

// With its checksum. `size_field`: in the place of the size in octal digits.
inline std::string header(const std::string &name, uint64_t size, char type = '0', const std::string &link = "",
                          const std::string &prefix = "",
                          const std::string &magic = std::string("ustar\0"
                                                                 "00",
                                                                 8),
                          std::string size_field = "") {
  std::string block(kBlock, '\0');
  const auto put = [&](size_t offset, const std::string &text) { block.replace(offset, text.size(), text); };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, size_field.empty() ? octal(size, 11) : size_field);
  put(136, octal(1, 11));
  put(148, "        ");
  put(156, std::string(1, type));
  put(157, link.substr(0, 100));
  put(257, magic);
  put(345, prefix);
  uint64_t sum = 0;
  for (const char byte : block) sum += static_cast<uint8_t>(byte);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return block;
}

inline std::string member(const std::string &name, const std::string &bytes) {
  return header(name, bytes.size()) + padded(bytes);
}

// A record of an extended header of PAX, whose length counts itself.
inline std::string record(const std::string &key, const std::string &value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) length = std::to_string(length).size() + rest;
  return std::to_string(length) + " " + key + "=" + value + "\n";
}

inline std::string pax(const std::string &records, char type = 'x') {
  return header("PaxHeaders/x", records.size(), type) + padded(records);
}

inline std::string end() { return std::string(2 * kBlock, '\0'); }

inline dali_l3::loader::ReadAt read_from(const std::string &bytes) {
  return dali_l3::loader::read_at({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
}

inline void write(const std::string &path, const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }

}  // namespace tar_files
