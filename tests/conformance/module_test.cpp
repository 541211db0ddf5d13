#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/kernels.hpp"
#include "tests/conformance/support.hpp"

namespace xpu::conformance {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// Modules of every format, and what is told of their kernels.
class ModuleTest : public DeviceTest {
 protected:
  Result<std::unique_ptr<hal::Module>> compile(std::string_view text, std::string_view options = "") const {
    hal::ModuleSource source;
    source.format = hal::ModuleFormat::source_cpp;
    source.name = "conformance";
    source.code = std::as_bytes(std::span(text));
    source.options = options;
    return device().create_module(source);
  }
  std::unique_ptr<hal::Module> of_functions(std::span<const KernelDescriptor> functions) const {
    hal::ModuleSource source;
    source.format = hal::ModuleFormat::functions;
    source.name = "functions";
    source.functions = functions;
    return device().create_module(source).value();
  }
  /// What a kernel with the parameters (u64* result) stores there.
  std::uint64_t result_of(const hal::Kernel& kernel) {
    const std::unique_ptr<hal::Queue> queue = new_queue();
    auto* const result = allocate_zeros<std::uint64_t>(1);
    launch(*queue, kernel, items({1}), result).value();
    queue->synchronize_blocking().value();
    return *result;
  }
};
XPU_CONFORMANCE_SUITE(ModuleTest);

void store_five(const WorkItem&, std::uint64_t* result) { *result = 5; }
void store_six(const WorkItem&, std::uint64_t* result) { *result = 6; }

template <auto function>
KernelDescriptor described(const char* name, const KernelFacts& facts = {}) {
  static const kernel_function::Described<function> kDescribed(name, facts, "result");
  KernelDescriptor descriptor = kDescribed.descriptor;
  descriptor.name = name;
  descriptor.facts = facts;
  return descriptor;
}

constexpr std::string_view kTwoKernels = R"(
void store_ten(const xpu::WorkItem&, std::uint64_t* result) { *result = 10; }
XPU_KERNEL(store_ten, "result");
void store_eleven(const xpu::WorkItem&, std::uint64_t* result) { *result = 11; }
XPU_KERNEL(store_eleven, "result");
)";

TEST_P(ModuleTest, RegisteredKernelsAreListedAndFound) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Module> module = device().create_module({}).value();
  EXPECT_THAT(module->kernel_names(), Contains("conformance_set"));
  EXPECT_THAT(module->kernel_names(), Contains("conformance_meet"));
  EXPECT_EQ(module->kernel("conformance_set").value()->info().name, "conformance_set");
}

TEST_P(ModuleTest, AKernelThatIsRegisteredLaterIsFoundUntilItIsTakenBack) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Module> module = device().create_module({}).value();
  static KernelDescriptor later = described<store_five>("conformance_registered_later");
  EXPECT_TRUE(fails_with(ErrorCode::not_found, module->kernel("conformance_registered_later")));
  xpu_register_kernel(&later);
  const Result<std::shared_ptr<const hal::Kernel>> kernel = module->kernel("conformance_registered_later");
  EXPECT_TRUE(is_ok(kernel));
  if (kernel) {
    EXPECT_EQ(result_of(**kernel), 5u);
  }
  xpu_unregister_kernel(&later);
  EXPECT_TRUE(fails_with(ErrorCode::not_found, module->kernel("conformance_registered_later")));
}

TEST_P(ModuleTest, OfTwoKernelsOfOneNameTheLaterIsFound) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Module> module = device().create_module({}).value();
  static KernelDescriptor earlier = described<store_five>("conformance_twice");
  static KernelDescriptor later = described<store_six>("conformance_twice");
  xpu_register_kernel(&earlier);
  xpu_register_kernel(&later);
  EXPECT_EQ(result_of(*module->kernel("conformance_twice").value()), 6u);
  xpu_unregister_kernel(&later);
  EXPECT_EQ(result_of(*module->kernel("conformance_twice").value()), 5u);
  xpu_unregister_kernel(&earlier);
}

TEST_P(ModuleTest, FunctionsAreKernels) {
  XPU_NEEDS(function_modules);
  const KernelDescriptor functions[] = {described<store_five>("five"), described<store_six>("six")};
  const std::unique_ptr<hal::Module> module = of_functions(functions);
  EXPECT_THAT(module->kernel_names(), UnorderedElementsAre("five", "six"));
  EXPECT_EQ(result_of(*module->kernel("five").value()), 5u);
  EXPECT_EQ(result_of(*module->kernel("six").value()), 6u);
}

TEST_P(ModuleTest, FunctionsAreNotRegistered) {
  XPU_NEEDS(function_modules);
  XPU_NEEDS(registered_modules);
  const KernelDescriptor functions[] = {described<store_five>("conformance_of_one_module")};
  const std::unique_ptr<hal::Module> module = of_functions(functions);
  EXPECT_TRUE(fails_with(ErrorCode::not_found, device().create_module({}).value()->kernel("conformance_of_one_module")));
}

TEST_P(ModuleTest, DescriptionsOfFunctionsAreCopied) {
  XPU_NEEDS(function_modules);
  std::shared_ptr<const hal::Kernel> kernel;
  {
    std::string name = "a name that goes";
    std::string argument_name = "an argument that goes";
    KernelArgument argument{argument_name.c_str(), ArgumentType::pointer, ArgumentType::u64, 8, 0};
    KernelDescriptor function = described<store_five>("five");
    function.name = name.c_str();
    function.arguments = &argument;
    const std::unique_ptr<hal::Module> module = of_functions({&function, 1});
    name.assign(name.size(), 'x');
    argument_name.assign(argument_name.size(), 'x');
    argument = {};
    function = {};
    kernel = module->kernel("a name that goes").value();
  }
  EXPECT_EQ(kernel->info().name, "a name that goes");
  ASSERT_EQ(kernel->info().arguments.size(), 1u);
  EXPECT_STREQ(kernel->info().arguments[0].name, "an argument that goes");
  EXPECT_EQ(result_of(*kernel), 5u);
}

TEST_P(ModuleTest, MachineCodeIsAKernel) {
  XPU_NEEDS(machine_code_modules);
#if defined(__x86_64__)
  // mov rax, [rdi]; mov qword [rax], 123; ret
  const std::vector<std::uint8_t> code = {0x48, 0x8b, 0x07, 0x48, 0xc7, 0x00, 0x7b, 0x00, 0x00, 0x00, 0xc3};
#elif defined(__aarch64__)
  // ldr x0, [x0]; mov x1, #123; str x1, [x0]; ret
  const std::vector<std::uint8_t> code = {0x00, 0x00, 0x40, 0xf9, 0x61, 0x0f, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xf9, 0xc0, 0x03, 0x5f, 0xd6};
#else
#error "write the three instructions for this processor"
#endif
  KernelDescriptor function = described<store_five>("five");
  function.name = "assembled";
  function.function = nullptr;
  hal::ModuleSource source;
  source.format = hal::ModuleFormat::machine_code;
  source.code = std::as_bytes(std::span(code));
  source.functions = {&function, 1};
  std::unique_ptr<hal::Module> module = device().create_module(source).value();
  EXPECT_THAT(module->kernel_names(), UnorderedElementsAre("assembled"));
  const std::shared_ptr<const hal::Kernel> kernel = module->kernel("assembled").value();
  module.reset();
  EXPECT_EQ(result_of(*kernel), 123u);
}

TEST_P(ModuleTest, SourceTextIsCompiled) {
  XPU_NEEDS(source_cpp_modules);
  const std::unique_ptr<hal::Module> module = compile(kTwoKernels).value();
  EXPECT_THAT(module->kernel_names(), UnorderedElementsAre("store_ten", "store_eleven"));
  EXPECT_EQ(result_of(*module->kernel("store_ten").value()), 10u);
  EXPECT_EQ(result_of(*module->kernel("store_eleven").value()), 11u);
}

TEST_P(ModuleTest, OptionsReachTheCompiler) {
  XPU_NEEDS(source_cpp_modules);
  constexpr std::string_view kText = R"(
void store_macro(const xpu::WorkItem&, std::uint64_t* result) { *result = VALUE + OTHER; }
XPU_KERNEL(store_macro, "result");
)";
  EXPECT_EQ(result_of(*compile(kText, "-DVALUE=40 -DOTHER=2").value()->kernel("store_macro").value()), 42u);
  EXPECT_EQ(result_of(*compile(kText, "-DVALUE=50 -DOTHER=3").value()->kernel("store_macro").value()), 53u);
}

TEST_P(ModuleTest, TwoModulesMayHaveKernelsOfOneName) {
  XPU_NEEDS(source_cpp_modules);
  const std::unique_ptr<hal::Module> first =
      compile("void store(const xpu::WorkItem&, std::uint64_t* r) { *r = 1; } XPU_KERNEL(store);").value();
  const std::unique_ptr<hal::Module> second =
      compile("void store(const xpu::WorkItem&, std::uint64_t* r) { *r = 2; } XPU_KERNEL(store);").value();
  EXPECT_EQ(result_of(*first->kernel("store").value()), 1u);
  EXPECT_EQ(result_of(*second->kernel("store").value()), 2u);
}

TEST_P(ModuleTest, SourceTextMayIncludeTheStandardLibrary) {
  XPU_NEEDS(source_cpp_modules);
  const std::unique_ptr<hal::Module> module = compile(R"(
#include <cmath>
#include <numeric>
#include <vector>
void store_sum(const xpu::WorkItem&, std::uint64_t* result) {
  std::vector<std::uint64_t> values(100);
  std::iota(values.begin(), values.end(), std::uint64_t{1});
  *result = std::accumulate(values.begin(), values.end(), static_cast<std::uint64_t>(std::sqrt(16.0)));
}
XPU_KERNEL(store_sum, "result");
)")
                                                  .value();
  EXPECT_EQ(result_of(*module->kernel("store_sum").value()), 5'054u);
}

TEST_P(ModuleTest, AKernelOfSourceTextIsDescribedAsOneOfThisProgram) {
  XPU_NEEDS(source_cpp_modules);
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Module> module = compile(R"(
void copy_words(const xpu::WorkItem& item, const std::uint64_t* source, std::uint64_t* destination) {
  destination[item.global_id(0)] = source[item.global_id(0)];
}
XPU_KERNEL(copy_words, "source", "destination");
)")
                                                  .value();
  const hal::KernelInfo compiled = module->kernel("copy_words").value()->info();
  const hal::KernelInfo registered = suite_kernel("conformance_copy_words")->info();
  EXPECT_EQ(compiled.argument_bytes, registered.argument_bytes);
  ASSERT_EQ(compiled.arguments.size(), registered.arguments.size());
  for (std::size_t index = 0; index < compiled.arguments.size(); ++index) {
    EXPECT_STREQ(compiled.arguments[index].name, registered.arguments[index].name);
    EXPECT_EQ(compiled.arguments[index].type, registered.arguments[index].type);
    EXPECT_EQ(compiled.arguments[index].pointee, registered.arguments[index].pointee);
    EXPECT_EQ(compiled.arguments[index].offset_bytes, registered.arguments[index].offset_bytes);
  }
}

TEST_P(ModuleTest, TheCompilersWholeComplaintIsInTheError) {
  XPU_NEEDS(source_cpp_modules);
  const Result<std::unique_ptr<hal::Module>> module = compile(
      "void broken(const xpu::WorkItem&) {\n"
      "  first_unknown_name = 1;\n"
      "}\n"
      "void broken_too(const xpu::WorkItem&) { second_unknown_name = 2; }\n");
  ASSERT_FALSE(module);
  EXPECT_NE(module.error().message.back(), '\n');
  EXPECT_THAT(module.error().message, HasSubstr("first_unknown_name"));
  EXPECT_THAT(module.error().message, HasSubstr("second_unknown_name"));
  EXPECT_THAT(module.error().message, HasSubstr("2:")) << "the line of the text";
  EXPECT_EQ(module.error().code, ErrorCode::invalid_argument);
}

TEST_P(ModuleTest, AModuleThatDidNotCompileDoesNoHarm) {
  XPU_NEEDS(source_cpp_modules);
  EXPECT_FALSE(compile("this is no program"));
  EXPECT_TRUE(is_ok(compile(kTwoKernels)));
}

TEST_P(ModuleTest, AnUnknownNameIsNotFoundAndTheOthersAreNamed) {
  XPU_NEEDS(function_modules);
  const KernelDescriptor functions[] = {described<store_five>("five"), described<store_six>("six")};
  const Result<std::shared_ptr<const hal::Kernel>> kernel = of_functions(functions)->kernel("seven");
  ASSERT_TRUE(fails_with(ErrorCode::not_found, kernel));
  EXPECT_THAT(kernel.error().message, HasSubstr("seven"));
  EXPECT_THAT(kernel.error().message, HasSubstr("five"));
  EXPECT_THAT(kernel.error().message, HasSubstr("six"));
}

TEST_P(ModuleTest, NamesAreTakenWhole) {
  XPU_NEEDS(function_modules);
  const KernelDescriptor functions[] = {described<store_five>("five")};
  const std::unique_ptr<hal::Module> module = of_functions(functions);
  for (const std::string_view name : {"", "fiv", "five ", "Five"}) {
    EXPECT_TRUE(fails_with(ErrorCode::not_found, module->kernel(name))) << "'" << name << "'";
  }
  // A view into a longer text, which does not end where the name does.
  EXPECT_TRUE(is_ok(module->kernel(std::string_view("fivesix").substr(0, 4))));
}

TEST_P(ModuleTest, ArgumentsAreDescribed) {
  XPU_NEEDS(registered_modules);
  const auto kernel = suite_kernel("conformance_store_every_type");
  const hal::KernelInfo& info = kernel->info();
  const std::vector<ArgumentType> expected = {ArgumentType::pointer, ArgumentType::boolean,  ArgumentType::i8,  ArgumentType::u8,
                                              ArgumentType::i16,     ArgumentType::u16,      ArgumentType::i32, ArgumentType::u32,
                                              ArgumentType::i64,     ArgumentType::u64,      ArgumentType::f32, ArgumentType::f64,
                                              ArgumentType::pointer, ArgumentType::structure};
  EXPECT_TRUE(info.has_argument_types);
  ASSERT_EQ(info.arguments.size(), expected.size());
  for (std::size_t index = 0; index < expected.size(); ++index) EXPECT_EQ(info.arguments[index].type, expected[index]) << index;
  EXPECT_EQ(info.arguments[0].pointee, ArgumentType::structure);
  EXPECT_EQ(info.arguments[12].pointee, ArgumentType::f32);
  EXPECT_STREQ(info.arguments[0].name, "result");
  EXPECT_STREQ(info.arguments[13].name, "structure");
  EXPECT_EQ(info.arguments[13].size_bytes, 3u);
}

TEST_P(ModuleTest, ArgumentsLieInOrderAtTheirAlignment) {
  XPU_NEEDS(registered_modules);
  const auto kernel = suite_kernel("conformance_store_structures");
  const hal::KernelInfo& info = kernel->info();
  ASSERT_EQ(info.arguments.size(), 7u);
  const std::uint32_t offsets[] = {0, 4, 16, 32, 96, 97, 360};
  const std::uint32_t sizes[] = {1, 12, 1, 64, 1, 256, 8};
  for (std::size_t index = 0; index < 7; ++index) {
    EXPECT_EQ(info.arguments[index].offset_bytes, offsets[index]) << index;
    EXPECT_EQ(info.arguments[index].size_bytes, sizes[index]) << index;
    EXPECT_STREQ(info.arguments[index].name, "") << index;
  }
  EXPECT_EQ(info.argument_bytes, 368u);
}

TEST_P(ModuleTest, TheFactsOfAKernelAreTold) {
  XPU_NEEDS(registered_modules);
  EXPECT_TRUE(suite_kernel("conformance_short_multiply_add")->info().facts.short_and_independent);
  EXPECT_FALSE(suite_kernel("conformance_multiply_add")->info().facts.short_and_independent);
  EXPECT_EQ(suite_kernel("conformance_own_local_memory")->info().facts.local_memory_bytes, 256u);
  const auto required = suite_kernel("conformance_required_local");
  EXPECT_EQ(required->info().facts.required_local[0], 4u);
  EXPECT_EQ(required->info().facts.required_local[1], 2u);
  EXPECT_EQ(required->info().facts.required_local[2], 1u);
}

TEST_P(ModuleTest, AKernelIsDescribedAlikeEveryTime) {
  XPU_NEEDS(registered_modules);
  const std::unique_ptr<hal::Module> module = device().create_module({}).value();
  const auto first = module->kernel("conformance_set").value();
  const auto second = module->kernel("conformance_set").value();
  EXPECT_EQ(first->info().name, second->info().name);
  EXPECT_EQ(first->info().argument_bytes, second->info().argument_bytes);
  EXPECT_EQ(&first->info(), &first->info());
  EXPECT_NE(first->native_handle(), nullptr);
}

TEST_P(ModuleTest, FourThreadsMakeModulesAndKernels) {
  XPU_NEEDS(function_modules);
  const KernelDescriptor functions[] = {described<store_five>("five"), described<store_six>("six")};
  on_threads(4, [&](int) {
    for (int round = 0; round < 50; ++round) {
      const std::unique_ptr<hal::Module> module = of_functions(functions);
      EXPECT_TRUE(is_ok(module->kernel("five")));
      EXPECT_FALSE(module->kernel("seven"));
    }
  });
}

TEST_P(ModuleTest, FourThreadsCompileTheSameText) {
  XPU_NEEDS(source_cpp_modules);
  on_threads(4, [&](int) { EXPECT_TRUE(is_ok(compile(kTwoKernels).value()->kernel("store_ten"))); });
}

}  // namespace
}  // namespace xpu::conformance
