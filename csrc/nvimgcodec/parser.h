// Recognizes L3 files and tells the framework what they hold.
#pragma once

#include "common.h"

namespace dali_l3 {

// The descriptor points to the parser: it stays where it is while it is registered.
class Parser {
 public:
  explicit Parser(const nvimgcodecFrameworkDesc_t *framework);
  Parser(const Parser &) = delete;
  Parser &operator=(const Parser &) = delete;
  const nvimgcodecParserDesc_t *descriptor() const { return &descriptor_; }

 private:
  static nvimgcodecStatus_t CanParse(void *instance, int *result, nvimgcodecCodeStreamDesc_t *code_stream) noexcept;
  static nvimgcodecStatus_t Create(void *instance, nvimgcodecParser_t *parser) noexcept;
  static nvimgcodecStatus_t Destroy(nvimgcodecParser_t parser) noexcept;
  static nvimgcodecStatus_t GetCodeStreamInfo(nvimgcodecParser_t parser, nvimgcodecCodeStreamInfo_t *info,
                                              nvimgcodecCodeStreamDesc_t *code_stream) noexcept;
  static nvimgcodecStatus_t GetImageInfo(nvimgcodecParser_t parser, nvimgcodecImageInfo_t *info,
                                         nvimgcodecCodeStreamDesc_t *code_stream) noexcept;

  Log log_;
  nvimgcodecParserDesc_t descriptor_;
};

}  // namespace dali_l3
