#include "hal/source_compiler.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <thread>

#include "hal/test_support/surroundings.hpp"

namespace xpu::hal {
namespace {

using test_support::read_file;
using test_support::ScopedVariable;
using test_support::TemporaryFolder;
using test_support::write_file;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr std::string_view kStoreText = R"(void store(const xpu::WorkGroup&, int* target) { *target = VALUE; }
XPU_KERNEL(store, "target");
)";

/// Calls the only kernel of the library, which stores an int.
int stored_by(const CompiledSource& source) {
  int target = 0;
  int* address = &target;
  std::byte block[sizeof address];
  std::memcpy(block, &address, sizeof address);
  const WorkGroup group;
  source.kernels()->function(block, &group);
  return target;
}

int compiled_and_stored(std::string_view text, std::string_view options) {
  const auto source = compile_source(text, "store.cpp", options);
  EXPECT_TRUE(source) << to_string(source.error());
  return source ? stored_by(**source) : -1;
}

/// A cache of its own, and a compiler that counts how often it was started to compile.
class SourceCompiler : public testing::Test {
 protected:
  SourceCompiler() {
    write_file(compiler(), fmt::format("#!/bin/sh\ncase \"$1\" in --version) ;; *) echo started >> '{}' ;; esac\nexec c++ \"$@\"\n",
                                       folder_.file("count")));
    std::filesystem::permissions(compiler(), std::filesystem::perms::owner_all);
  }

  std::string compiler() const { return folder_.file("compiler"); }
  std::string cache() const { return folder_.file("cache"); }
  std::size_t compilations() const {
    const std::string lines = read_file(folder_.file("count"));
    return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n'));
  }
  std::vector<std::string> cached() const {
    std::vector<std::string> paths;
    if (!std::filesystem::exists(cache())) return paths;
    for (const auto& entry : std::filesystem::directory_iterator(cache())) paths.push_back(entry.path().string());
    return paths;
  }

  TemporaryFolder folder_;
  ScopedVariable compiler_variable_{"XPU_CXX", compiler()};
  ScopedVariable cache_variable_{"XPU_CACHE_DIR", cache()};
  ScopedVariable temporary_variable_{"TMPDIR", folder_.path()};
};

TEST_F(SourceCompiler, ALibraryIsCompiledOnceAndThenTakenFromTheCache) {
  EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=1"), 1);
  EXPECT_EQ(compilations(), 1u);
  EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=1"), 1);
  EXPECT_EQ(compilations(), 1u);
  EXPECT_THAT(cached(), SizeIs(1)) << "no temporary file is left";
}

TEST_F(SourceCompiler, OtherOptionsAndOtherTextAreOtherLibraries) {
  EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=1"), 1);
  EXPECT_EQ(compiled_and_stored(kStoreText, "  -DVALUE=2  -O1 "), 2);
  EXPECT_EQ(compiled_and_stored(std::string(kStoreText) + "// more\n", "-DVALUE=1"), 1);
  EXPECT_EQ(compilations(), 3u);
  EXPECT_THAT(cached(), SizeIs(3));
}

TEST_F(SourceCompiler, AnotherCompilerCompilesAnew) {
  EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=1"), 1);
  write_file(compiler(), read_file(compiler()) + "# changed\n");
  EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=1"), 1);
  EXPECT_EQ(compilations(), 2u);
}

TEST_F(SourceCompiler, AComplaintCarriesTheNameAndTheLinesOfTheText) {
  const auto source = compile_source("int one;\n\nvoid bad(const xpu::WorkItem&) { return two; }\nXPU_KERNEL(bad);\n", "my kernel/3", "");
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(source.error().message, HasSubstr("source 'my kernel/3' does not compile:\n"));
  EXPECT_THAT(source.error().message, HasSubstr("my kernel/3:3:41: error: "));
  EXPECT_THAT(source.error().message, HasSubstr("return two;")) << "the line itself";
  EXPECT_THAT(source.error().message, Not(HasSubstr(folder_.path())));
  EXPECT_THAT(cached(), IsEmpty());
}

TEST_F(SourceCompiler, AKernelWithAReferenceParameterIsRefusedWithTheReason) {
  const auto source = compile_source("void bad(const xpu::WorkItem&, int&) {}\nXPU_KERNEL(bad);\n", "bad.cpp", "");
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().message, HasSubstr("parameters of a kernel are values or pointers"));
}

TEST_F(SourceCompiler, AFunctionThatNobodyHasIsNamedAndTheFailureIsNotKept) {
  const std::string text =
      "extern \"C\" void nobody_has_this();\nvoid call(const xpu::WorkGroup&) { nobody_has_this(); }\nXPU_KERNEL(call);\n";
  const auto source = compile_source(text, "call.cpp", "");
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(source.error().message, HasSubstr("source 'call.cpp' was compiled but cannot be loaded: "));
  EXPECT_THAT(source.error().message, HasSubstr("nobody_has_this"));
  EXPECT_THAT(cached(), IsEmpty());
}

TEST_F(SourceCompiler, TheHeaderMayBeIncludedOnceMore) {
  const std::string include = "#include \"xpu/hal/kernel_function.hpp\"\n#include <xpu/hal/kernel_function.hpp>\n";
  EXPECT_EQ(compiled_and_stored(include + std::string(kStoreText), "-DVALUE=5"), 5);
}

TEST_F(SourceCompiler, AHeaderOfTheUserThatChangedIsReadAgain) {
  std::filesystem::create_directory(folder_.file("include"));
  const std::string header = folder_.file("include/value.hpp"), options = "-I" + folder_.file("include");
  const std::string text = "#include \"value.hpp\"\n" + std::string(kStoreText);
  write_file(header, "constexpr int VALUE = 1;\n");
  EXPECT_EQ(compiled_and_stored(text, options), 1);
  EXPECT_EQ(compiled_and_stored(text, options), 1);
  EXPECT_EQ(compilations(), 1u);
  write_file(header, "constexpr int VALUE = 22;\n");
  EXPECT_EQ(compiled_and_stored(text, options), 22);
  EXPECT_EQ(compilations(), 2u);
}

TEST_F(SourceCompiler, ABrokenCachedFileIsCompiledAnewAndReplaced) {
  EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=1"), 1);
  ASSERT_THAT(cached(), SizeIs(1));
  const std::string path = cached().front();
  const std::string whole = read_file(path);
  std::filesystem::remove(path);  // the old file stays as it is while it is loaded
  write_file(path, whole.substr(0, whole.size() / 2));
  EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=1"), 1);
  EXPECT_EQ(compilations(), 2u);
  EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=1"), 1);
  EXPECT_EQ(compilations(), 2u);
  EXPECT_THAT(cached(), SizeIs(1));
}

TEST_F(SourceCompiler, WithoutACacheItCompilesEachTimeAndLeavesNothing) {
  for (const char* folder : {"", "/dev/null/cache"}) {
    const ScopedVariable no_cache("XPU_CACHE_DIR", folder);
    const std::size_t before = compilations();
    EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=3"), 3);
    EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=3"), 3);
    EXPECT_EQ(compilations(), before + 2) << "'" << folder << "'";
  }
  EXPECT_THAT(folder_.names(), testing::UnorderedElementsAre("compiler", "count"));
}

TEST_F(SourceCompiler, TheCacheFollowsXdgAndThenHome) {
  const ScopedVariable none("XPU_CACHE_DIR", std::nullopt), home("HOME", folder_.file("home"));
  {
    const ScopedVariable xdg("XDG_CACHE_HOME", folder_.file("xdg"));
    EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=1"), 1);
    EXPECT_FALSE(std::filesystem::is_empty(folder_.file("xdg/xpu")));
  }
  const ScopedVariable xdg("XDG_CACHE_HOME", std::nullopt);
  EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=1"), 1);
  EXPECT_FALSE(std::filesystem::is_empty(folder_.file("home/.cache/xpu")));
}

TEST_F(SourceCompiler, TwoThreadsMayCompileTheSameTextAtOnce) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([] { EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=4"), 4); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(cached(), SizeIs(1));
  const std::size_t before = compilations();
  EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=4"), 4);
  EXPECT_EQ(compilations(), before);
}

TEST_F(SourceCompiler, ACompilerThatDoesNotAnswerIsPassedOver) {
  const ScopedVariable missing("XPU_CXX", "no_such_compiler");
  EXPECT_EQ(compiled_and_stored(kStoreText, "-DVALUE=6"), 6);
  EXPECT_EQ(compilations(), 0u);
}

TEST_F(SourceCompiler, WithoutACompilerItSaysWhichWereTried) {
  const ScopedVariable missing("XPU_CXX", "no_such_compiler"), path("PATH", "/nowhere");
  const auto source = compile_source(kStoreText, "store.cpp", "-DVALUE=1");
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::unavailable);
  EXPECT_EQ(
      source.error().message,
      "there is no C++ compiler to compile source text with: none of XPU_CXX='no_such_compiler', c++, g++ and clang++ answers in PATH "
      "'/nowhere'");
}

TEST_F(SourceCompiler, ALibraryThatCannotTellItsAbiIsRefused) {
  const auto source = compile_source("int unused;\n", "bare.cpp", "-UXPU_KERNEL_SOURCE");
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().message, "source 'bare.cpp' was compiled without our kernel_function.hpp");
  EXPECT_THAT(cached(), IsEmpty());
}

TEST_F(SourceCompiler, TextWithoutAKernelHasNone) {
  const auto source = compile_source("int unused;\n", "", "");
  ASSERT_TRUE(source) << to_string(source.error());
  EXPECT_EQ((*source)->kernels(), nullptr);
}

}  // namespace
}  // namespace xpu::hal
