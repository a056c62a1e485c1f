// Decodes L3 files as one batch and prints, as JSON, what the kernels executed: benchmarks/gpu/counts.py.
//
//   decode_counts COLOR SAMPLE FILE.l3 ...
//
// COLOR and SAMPLE are numbers of l3_color and l3_sample. The pixels are compared with those of the decoder for the
// CPU.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cuda/batch.h"
#include "cuda_objects.h"
#include "l3/l3_cuda.h"

using namespace ptx;

namespace {

[[noreturn]] void stop(const std::string &message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

struct Image {
  Image(const char *path, l3_color color, l3_sample sample) {
    std::ifstream stream(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(stream), {});
    l3_error error{};
    if (l3_open(bytes.data(), bytes.size(), &file, &error)) stop(std::string(path) + ": " + error.message);
    const l3_info &info = file.info;
    const size_t row = size_t{info.width} * l3_output_channels(&info, color) * l3_output_sample_size(&info, sample);
    expected.resize(row * info.height);
    output = {expected.data(), row, color, sample, 0};
    region = {0, 0, info.width, info.height};
    if (l3_decode(&file, &region, &output, 0, &error)) stop(std::string(path) + ": " + error.message);
    memory = std::make_unique<DeviceBuffer>(expected.size());
    output.data = memory->data();
  }

  std::vector<uint8_t> bytes, expected;
  l3_file file{};
  l3_output output{};
  l3_rect region{};
  std::unique_ptr<DeviceBuffer> memory;
};

// All kernels get the batch's layout, and where in its order of tiles those of the launch begin.
uint32_t tiles_of(const runtime::Launch &launch) {
  l3::BatchLayout layout;
  uint32_t first;
  std::memcpy(&layout, &launch.parameters[launch.kernel->parameters[1].offset], sizeof layout);
  std::memcpy(&first, &launch.parameters[launch.kernel->parameters[2].offset], sizeof first);
  for (uint32_t kind = 0; kind < l3::kTileKinds; kind++)
    if (layout.kind_begin[kind] == first && layout.kind_begin[kind + 1] > first)
      return layout.kind_begin[kind + 1] - first;
  stop("a launch of no kind of tiles");
}

void print(const char *name, const Counts::Global &global, const char *end) {
  std::printf("  \"%s\": {\"accesses\": %zu, \"bytes\": %zu, \"sectors\": %zu}%s\n", name, size_t(global.accesses),
              size_t(global.bytes), size_t(global.sectors), end);
}

void print(const runtime::Launch &launch, const Counts &counts) {
  static constexpr const char *kNames[] = {"move", "alu", "fma", "load_store", "shuffle", "control"};
  std::printf(" {\"kernel\": \"%s\", \"tiles\": %u, \"blocks\": %u, \"threads\": %u,\n", launch.kernel->name.c_str(),
              tiles_of(launch), launch.blocks, launch.threads);
  std::printf("  \"instructions\": {");
  const auto kinds = counts.by_kind(launch.kernel->code);
  for (uint32_t kind = 0; kind < kKinds; kind++)
    std::printf("%s\"%s\": {\"warps\": %zu, \"lanes\": %zu}", kind ? ", " : "", kNames[kind], size_t(kinds[kind].warps),
                size_t(kinds[kind].lanes));
  std::printf("},\n  \"branches\": {\"executed\": %zu, \"taken\": %zu, \"divergent\": %zu},\n",
              size_t(counts.branches.executed), size_t(counts.branches.taken), size_t(counts.branches.divergent));
  print("read", counts.read, ",");
  print("written", counts.written, ",");
  std::printf("  \"shared\": {\"accesses\": %zu, \"wavefronts\": %zu, \"conflicts\": %zu},\n",
              size_t(counts.shared.accesses), size_t(counts.shared.wavefronts), size_t(counts.shared.conflicts));
  // Lines of the PTX: how often warps executed them.
  std::printf("  \"lines\": {");
  const char *separator = "";
  for (size_t i = 0; i < counts.blocks.size(); i++)
    for (const BasicBlock::Instruction &instruction : launch.kernel->code[i].instructions) {
      std::printf("%s\"%d\": [%zu, %zu]", separator, instruction.line, size_t(counts.blocks[i].warps),
                  size_t(counts.blocks[i].lanes));
      separator = ", ";
    }
  std::printf("}}");
}

}  // namespace

int main(int count, char **arguments) {
  if (count < 4) stop("decode_counts COLOR SAMPLE FILE.l3 ...");
  runtime::reset({"sm_90", runtime::Streams::kAtOnce, {Order::kFirst, 1, false}});
  const Stream stream;
  std::vector<Image> images;
  for (int i = 3; i < count; i++)
    images.emplace_back(arguments[i], l3_color(std::atoi(arguments[1])), l3_sample(std::atoi(arguments[2])));
  std::vector<l3_cuda_image> batch;
  for (const Image &image : images) batch.push_back({image.file, image.region, image.output});

  l3_error error{};
  l3_cuda_decoder *decoder = nullptr;
  if (l3_cuda_create(&decoder, &error)) stop(error.message);
  size_t failed = 0;
  if (l3_cuda_decode(decoder, batch.data(), batch.size(), nullptr, stream, &failed, &error)) stop(error.message);
  for (const Image &image : images) {
    std::vector<uint8_t> actual(image.expected.size());
    image.memory->copy_to(actual.data(), stream);
    if (actual != image.expected) stop("the kernels decode something else than the decoder for the CPU");
  }
  l3_cuda_destroy(decoder);

  std::printf("[\n");
  const auto launches = runtime::launches();
  for (size_t i = 0; i < launches.size(); i++) {
    print(launches[i], runtime::counts(*launches[i].kernel));
    std::printf("%s\n", i + 1 < launches.size() ? "," : "");
  }
  std::printf("]\n");
}
