#include "hal/source_compiler.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/process.hpp"
#include "hal/command.hpp"
#include "hal/kernel_function_text.hpp"
#include "hal/source_cache.hpp"

namespace xpu::hal {
namespace {

constexpr auto kCompilationLimit = std::chrono::seconds(60);
constexpr auto kVersionLimit = std::chrono::seconds(10);
constexpr const char* kSystemPath = "/usr/local/bin:/usr/bin:/bin";

// The code is compiled for the processor that runs it and goes nowhere else; a cached file is of this processor by its key.
#if defined(__x86_64__) || defined(__i386__)
constexpr const char* kProcessorOption = "-march=";
#else
constexpr const char* kProcessorOption = "-mcpu=";
#endif
constexpr const char* kThisProcessor = "native";

/// Nobody reads errno or the floating-point flags behind a kernel, and without them loops vectorise. Products and sums are not contracted:
/// source text and the same function compiled into a program give the same answer on every processor. Who prefers speed says
/// -ffp-contract=fast among the options, which come later.
const std::vector<std::string>& fixed_options() {
  static const auto& options = *new std::vector<std::string>{"-std=c++20",
                                                             "-O3",
                                                             "-fPIC",
                                                             "-shared",
                                                             "-fvisibility=hidden",
                                                             "-fno-math-errno",
                                                             "-fno-trapping-math",
                                                             "-ffp-contract=off",
                                                             "-DXPU_KERNEL_SOURCE",
                                                             std::string(kProcessorOption) + kThisProcessor};
  return options;
}

// ---- what the environment says

struct CompilerSettings {
  std::string compiler;      ///< `XPU_CXX`; empty when it is not set.
  std::string path;          ///< Where programs are looked for.
  std::string cache_folder;  ///< Empty: no cache.
  std::string temporary_folder;
  std::vector<std::string> environment;  ///< Of the compiler, without TMPDIR.
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

std::string cache_folder_of_environment() {
  if (const char* folder = std::getenv("XPU_CACHE_DIR")) return folder;
  if (const std::string folder = variable("XDG_CACHE_HOME"); folder.starts_with('/')) return folder + "/xpu";
  if (const std::string home = variable("HOME"); home.starts_with('/')) return home + "/.cache/xpu";
  return {};
}

CompilerSettings compiler_settings() {
  if (base::has_raised_privileges()) return {{}, kSystemPath, {}, "/tmp", {std::string("PATH=") + kSystemPath}};
  CompilerSettings settings{variable("XPU_CXX"), variable("PATH"), cache_folder_of_environment(), variable("TMPDIR"), {}};
  if (settings.path.empty()) settings.path = kSystemPath;
  if (settings.temporary_folder.empty()) settings.temporary_folder = "/tmp";
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "TMPDIR=", 7) != 0) settings.environment.emplace_back(*entry);
  }
  return settings;
}

// ---- which compiler

struct Compiler {
  std::string path;
  std::string identity;  ///< Changes when another compiler answers at this path.
};

/// The first line that it says to --version, asked once in a process for each state of its file; nothing when it does not answer.
std::optional<std::string> version_of_compiler(const std::string& path, const std::string& file_state, const CompilerSettings& settings) {
  static base::Mutex mutex;
  static auto& versions = *new std::map<std::string, std::string>();
  {
    const base::MutexLock lock(mutex);
    if (const auto known = versions.find(file_state); known != versions.end()) return known->second;
  }
  const Result<CommandResult> answer = run_command({{path, "--version"}, settings.environment}, kVersionLimit);
  if (!answer || !answer->ended_well) return std::nullopt;
  std::string version = answer->output.substr(0, answer->output.find('\n'));
  const base::MutexLock lock(mutex);
  return versions.emplace(file_state, std::move(version)).first->second;
}

std::optional<Compiler> compiler_named(const std::string& name, const CompilerSettings& settings) {
  const std::string path = find_program(name, settings.path);
  if (path.empty()) return std::nullopt;
  const std::optional<SourceInput> file = state_of_input(path);
  if (!file) return std::nullopt;
  const std::string file_state = fmt::format("{} {} {}", path, file->size_bytes, file->modified_ns);
  const std::optional<std::string> version = version_of_compiler(path, file_state, settings);
  if (!version) return std::nullopt;
  return Compiler{path, file_state + ' ' + *version};
}

Result<Compiler> find_compiler(const CompilerSettings& settings) {
  if (!settings.compiler.empty()) {
    if (std::optional<Compiler> compiler = compiler_named(settings.compiler, settings)) return *std::move(compiler);
    XPU_LOG_WARN_ONCE("hal", "XPU_CXX='{}' is no compiler that answers to --version; another one is used", settings.compiler);
  }
  for (const char* name : {"c++", "g++", "clang++"}) {
    if (std::optional<Compiler> compiler = compiler_named(name, settings)) return *std::move(compiler);
  }
  return Error{ErrorCode::unavailable,
               fmt::format("there is no C++ compiler to compile source text with: none of {}c++, g++ and clang++ answers in PATH '{}'",
                           settings.compiler.empty() ? "" : fmt::format("XPU_CXX='{}', ", settings.compiler), settings.path)};
}

// ---- the key

/// What a compiler makes code for when it is told to make it for this processor.
std::string read_processor_features() {
  std::ifstream file("/proc/cpuinfo");
  std::string features;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    for (const char* name : {"vendor_id", "cpu family", "model\t", "stepping", "flags", "CPU ", "Features", "isa", "uarch"}) {
      if (line.starts_with(name)) features += line + '\n';
    }
  }
  return features;
}

std::string key_of_source(std::string_view text, std::string_view options, const Compiler& compiler) {
  static const auto& processor_features = *new std::string(read_processor_features());
  std::string environment;
  for (const char* name : {"CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"}) {
    if (!base::has_raised_privileges()) environment += fmt::format("{}={}\n", name, variable(name));
  }
  return fmt::format("kernel abi {}\ncompiler {}\n{}{}options {} {}\nprelude {}\n{}\ntext {}\n{}", kKernelAbi, compiler.identity,
                     processor_features, environment, fmt::join(fixed_options(), " "), options, kernel_function_text().size(),
                     kernel_function_text(), text.size(), text);
}

// ---- loading

class LoadedLibrary final : public CompiledSource {
 public:
  LoadedLibrary(void* library, const KernelDescriptor* kernels) noexcept : library_(library), kernels_(kernels) {}
  ~LoadedLibrary() override { dlclose(library_); }
  const KernelDescriptor* kernels() const noexcept override { return kernels_; }

 private:
  void* const library_;
  const KernelDescriptor* const kernels_;
};

Result<std::shared_ptr<const CompiledSource>> load_library(const std::string& path, std::string_view name) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error{ErrorCode::invalid_argument, fmt::format("source '{}' was compiled but cannot be loaded: {}", name, dlerror())};
  }
  const auto abi = reinterpret_cast<std::uint32_t (*)()>(dlsym(library, "xpu_kernel_abi_of_module"));
  const auto kernels = reinterpret_cast<const KernelDescriptor* (*)()>(dlsym(library, "xpu_kernels_of_module"));
  if (abi == nullptr || kernels == nullptr || abi() != kKernelAbi) {
    dlclose(library);
    return Error{ErrorCode::invalid_argument, fmt::format("source '{}' was compiled without our kernel_function.hpp", name)};
  }
  return std::shared_ptr<const CompiledSource>(std::make_shared<const LoadedLibrary>(library, kernels()));
}

// ---- compiling

class WorkFolder {
 public:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  std::string file(std::string_view name) const { return fmt::format("{}/{}", path_, name); }
  const std::string& path() const noexcept { return path_; }

 private:
  const std::string path_;
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

Result<> write_text(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (file.good()) return {};
  return Error{ErrorCode::unavailable, fmt::format("cannot write {}: {}", path, std::strerror(errno)), errno};
}

std::vector<std::string> words_of(std::string_view options) {
  std::vector<std::string> words;
  while (!options.empty()) {
    const std::size_t end = std::min(options.find(' '), options.size());
    if (end != 0) words.emplace_back(options.substr(0, end));
    options.remove_prefix(std::min(end + 1, options.size()));
  }
  return words;
}

/// The library is at `work.file("kernel.so")` then, the rule for make at `work.file("inputs")`.
Result<> run_compiler(const Compiler& compiler, const CompilerSettings& settings, const WorkFolder& work, std::string_view name,
                      std::string_view options) {
  Command command{{compiler.path}, settings.environment};
  command.environment.push_back("TMPDIR=" + work.path());
  std::vector<std::string>& arguments = command.arguments;
  arguments.insert(arguments.end(), fixed_options().begin(), fixed_options().end());
  // The text stands in a file of its own, so that lines have the user's numbers, and may include the header once more.
  arguments.insert(arguments.end(),
                   {"-I" + work.path(), "-include", "xpu/hal/kernel_function.hpp", "-fmacro-prefix-map=" + work.path() + "/=", "-MMD",
                    "-MF", work.file("inputs"), work.file("kernel.cpp")});
  for (std::string& option : words_of(options)) arguments.push_back(std::move(option));
  arguments.insert(arguments.end(), {"-o", work.file("kernel.so")});

  XPU_TRY_ASSIGN(CommandResult result, run_command(command, kCompilationLimit));
  if (result.ended_well && access(work.file("kernel.so").c_str(), R_OK) == 0) return {};
  replace_all(result.output, work.file("kernel.cpp"), name);
  replace_all(result.output, work.path() + '/', "");
  std::string complaint = fmt::format("source '{}' does not compile:\n{}", name, result.output);
  while (complaint.ends_with('\n')) complaint.pop_back();
  return Error{ErrorCode::invalid_argument, std::move(complaint)};
}

std::vector<SourceInput> inputs_of_user(const WorkFolder& work) {
  std::ifstream file(work.file("inputs"));
  const std::string rule((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<SourceInput> inputs;
  for (const std::string& path : inputs_of_rule(rule)) {
    if (path.starts_with(work.path() + '/')) continue;
    inputs.push_back(state_of_input(path).value_or(SourceInput{path, -1, 0}));
  }
  return inputs;
}

}  // namespace

Result<std::shared_ptr<const CompiledSource>> compile_source(std::string_view text, std::string_view name, std::string_view options) {
  if (name.empty()) name = "source text";
  const CompilerSettings settings = compiler_settings();
  XPU_TRY_ASSIGN(const Compiler compiler, find_compiler(settings));
  const std::string key = key_of_source(text, options, compiler);
  const SourceCache cache(settings.cache_folder);
  if (const std::optional<std::string> path = cache.find(key)) {
    if (auto loaded = load_library(*path, name)) return loaded;
  }

  XPU_TRY_ASSIGN(std::string work_path, cache.make_work_folder(settings.temporary_folder));
  const WorkFolder work(std::move(work_path));
  std::error_code failed;
  std::filesystem::create_directories(work.file("xpu/hal"), failed);
  XPU_TRY(write_text(work.file("xpu/hal/kernel_function.hpp"), kernel_function_text()));
  XPU_TRY(write_text(work.file("kernel.cpp"), text));
  XPU_TRY(run_compiler(compiler, settings, work, name, options));
  XPU_TRY_ASSIGN(auto loaded, load_library(work.file("kernel.so"), name));
  if (!cache.add(key, inputs_of_user(work), work.file("kernel.so")) && !settings.cache_folder.empty()) {
    XPU_LOG_INFO("hal", "the compiled source '{}' cannot be kept in {}", name, settings.cache_folder);
  }
  return loaded;
}

}  // namespace xpu::hal
