// The entry of the nvImageCodec extension, through which nvImageCodec and with it DALI's own image decoders handle L3.

#include <memory>

#include "decoder.h"
#include "encoder.h"
#ifdef DALI_L3_CUDA
#include "gpu_decoder.h"
#endif
#include "l3/l3.h"
#include "parser.h"

namespace dali_l3 {
namespace {

constexpr char kId[] = "l3_extension";

// What one instance of the framework has registered. DALI makes an instance for every decoder operator.
class Extension {
 public:
  explicit Extension(const nvimgcodecFrameworkDesc_t *framework)
      : framework_(framework), parser_(framework), decoder_(framework), encoder_(framework) {}

  const nvimgcodecFrameworkDesc_t *framework() const { return framework_; }

  nvimgcodecStatus_t Register() {
    constexpr float priority = NVIMGCODEC_PRIORITY_NORMAL;
    if (auto status = framework_->registerParser(framework_->instance, parser_.descriptor(), priority)) return status;
    if (auto status = framework_->registerDecoder(framework_->instance, decoder_.descriptor(), priority)) return status;
#ifdef DALI_L3_CUDA
    if (auto status =
            framework_->registerDecoder(framework_->instance, gpu_decoder_.descriptor(), NVIMGCODEC_PRIORITY_HIGH))
      return status;
#endif
    return framework_->registerEncoder(framework_->instance, encoder_.descriptor(), priority);
  }

  // Unregistering what is not registered does no harm.
  void Unregister() {
    framework_->unregisterEncoder(framework_->instance, encoder_.descriptor());
#ifdef DALI_L3_CUDA
    framework_->unregisterDecoder(framework_->instance, gpu_decoder_.descriptor());
#endif
    framework_->unregisterDecoder(framework_->instance, decoder_.descriptor());
    framework_->unregisterParser(framework_->instance, parser_.descriptor());
  }

 private:
  const nvimgcodecFrameworkDesc_t *framework_;
  Parser parser_;
  Decoder decoder_;
  Encoder encoder_;
#ifdef DALI_L3_CUDA
  GpuDecoder gpu_decoder_{framework_};
#endif
};

nvimgcodecStatus_t Destroy(nvimgcodecExtension_t handle) noexcept {
  auto *extension = reinterpret_cast<Extension *>(handle);
  return Guarded(Log(extension->framework(), kId), NVIMGCODEC_STATUS_EXTENSION_INTERNAL_ERROR, [&] {
    extension->Unregister();
    delete extension;
    return NVIMGCODEC_STATUS_SUCCESS;
  });
}

nvimgcodecStatus_t Create(void * /*instance*/, nvimgcodecExtension_t *handle,
                          const nvimgcodecFrameworkDesc_t *framework) noexcept {
  return Guarded(Log(framework, kId), NVIMGCODEC_STATUS_EXTENSION_INTERNAL_ERROR, [&] {
    auto extension = std::make_unique<Extension>(framework);
    const auto status = extension->Register();
    if (status != NVIMGCODEC_STATUS_SUCCESS) {
      extension->Unregister();
      return status;
    }
    *handle = reinterpret_cast<nvimgcodecExtension_t>(extension.release());
    return NVIMGCODEC_STATUS_SUCCESS;
  });
}

}  // namespace
}  // namespace dali_l3

extern "C" nvimgcodecStatus_t nvimgcodecExtensionModuleEntry(nvimgcodecExtensionDesc_t *descriptor) {
  if (!descriptor) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  descriptor->instance = nullptr;
  descriptor->id = dali_l3::kId;
  descriptor->version = MAKE_SEMANTIC_VERSION(L3_VERSION_MAJOR, L3_VERSION_MINOR, L3_VERSION_PATCH);
  descriptor->ext_api_version = NVIMGCODEC_VER;
  descriptor->create = dali_l3::Create;
  descriptor->destroy = dali_l3::Destroy;
  return NVIMGCODEC_STATUS_SUCCESS;
}
