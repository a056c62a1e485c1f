// Recognizes L3 files and tells the framework what they hold.
#pragma once

#include "common.h"

namespace dali_l3 {

class Parser : public Component<nvimgcodecParserDesc_t> {
 public:
  explicit Parser(const nvimgcodecFrameworkDesc_t *framework);

 private:
  static nvimgcodecStatus_t CanParse(void *instance, int *result, nvimgcodecCodeStreamDesc_t *code_stream) noexcept;
  static nvimgcodecStatus_t Create(void *instance, nvimgcodecParser_t *parser) noexcept;
  static nvimgcodecStatus_t Destroy(nvimgcodecParser_t parser) noexcept;
  static nvimgcodecStatus_t GetCodeStreamInfo(nvimgcodecParser_t parser, nvimgcodecCodeStreamInfo_t *info,
                                              nvimgcodecCodeStreamDesc_t *code_stream) noexcept;
  static nvimgcodecStatus_t GetImageInfo(nvimgcodecParser_t parser, nvimgcodecImageInfo_t *info,
                                         nvimgcodecCodeStreamDesc_t *code_stream) noexcept;
};

}  // namespace dali_l3
