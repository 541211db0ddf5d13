#include "hal/function_module.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>

#include "hal/test_support/surroundings.hpp"
#include "hal/work_groups.hpp"

namespace xpu::hal {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Pair {
  float first, second;
};

void registered_saxpy(const WorkItem& item, float a, const float* x, float* y) { y[item.global_id(0)] += a * x[item.global_id(0)]; }
XPU_KERNEL(registered_saxpy, "a", "x", "y");

void registered_mixed(const WorkGroup&, bool, std::int8_t, std::uint64_t, Pair, double, const void*, Pair*) {}
XPU_KERNEL_WITH(registered_mixed, (KernelFacts{.short_and_independent = true, .local_memory_bytes = 64}));

void store_one(const WorkGroup&, int* target) { *target = 1; }
void store_two(const WorkGroup&, int* target) { *target = 2; }

ModuleSource source_of(ModuleFormat format, std::string_view name) {
  ModuleSource source;
  source.format = format;
  source.name = name;
  return source;
}

std::unique_ptr<Module> module_of(const ModuleSource& source) {
  auto module = create_function_module(source);
  EXPECT_TRUE(module) << to_string(module.error());
  return module ? *std::move(module) : nullptr;
}

std::shared_ptr<const FunctionKernel> kernel_of(const Module& module, std::string_view name) {
  const auto kernel = module.kernel(name);
  EXPECT_TRUE(kernel) << to_string(kernel.error());
  return kernel ? std::static_pointer_cast<const FunctionKernel>(*kernel) : nullptr;
}

/// Runs a kernel whose only argument is a pointer to int.
int stored_by_kernel(const FunctionKernel& kernel) {
  int target = 0;
  int* address = &target;
  std::byte block[sizeof address];
  std::memcpy(block, &address, sizeof address);
  WorkGroups(Geometry{}, kernel.info().facts, 1).run(kernel.function(), block, 0, 1, nullptr, 0);
  return target;
}

TEST(RegisteredModule, AKernelOfTheProgramIsThereWithItsParameters) {
  const auto module = module_of({});
  EXPECT_THAT(module->kernel_names(), Contains("registered_saxpy"));
  const auto kernel = kernel_of(*module, "registered_saxpy");
  const KernelInfo& info = kernel->info();
  EXPECT_EQ(info.name, "registered_saxpy");
  EXPECT_TRUE(info.has_argument_types);
  EXPECT_EQ(info.argument_bytes, 24u);
  ASSERT_EQ(info.arguments.size(), 3u);
  EXPECT_STREQ(info.arguments[0].name, "a");
  EXPECT_EQ(info.arguments[0].type, ArgumentType::f32);
  EXPECT_STREQ(info.arguments[1].name, "x");
  EXPECT_EQ(info.arguments[1].type, ArgumentType::pointer);
  EXPECT_EQ(info.arguments[1].pointee, ArgumentType::f32);
  EXPECT_EQ(info.arguments[1].offset_bytes, 8u);
  EXPECT_EQ(info.arguments[2].offset_bytes, 16u);
}

TEST(RegisteredModule, EveryTypeIsToldAndFactsAreKept) {
  const auto kernel = kernel_of(*module_of({}), "registered_mixed");
  const KernelInfo& info = kernel->info();
  std::vector<ArgumentType> types;
  std::vector<std::uint32_t> offsets;
  for (const KernelArgument& argument : info.arguments) {
    types.push_back(argument.type);
    offsets.push_back(argument.offset_bytes);
    EXPECT_STREQ(argument.name, "");
  }
  EXPECT_THAT(types, ElementsAre(ArgumentType::boolean, ArgumentType::i8, ArgumentType::u64, ArgumentType::structure, ArgumentType::f64,
                                 ArgumentType::pointer, ArgumentType::pointer));
  EXPECT_THAT(offsets, ElementsAre(0, 1, 8, 16, 24, 32, 40));
  EXPECT_EQ(info.arguments[5].pointee, ArgumentType::none);
  EXPECT_EQ(info.arguments[6].pointee, ArgumentType::structure);
  EXPECT_EQ(info.argument_bytes, 48u);
  EXPECT_TRUE(info.facts.short_and_independent);
  EXPECT_EQ(info.facts.local_memory_bytes, 64u);
}

TEST(RegisteredModule, AKernelRunsOverItsIndexSpace) {
  const auto kernel = kernel_of(*module_of({}), "registered_saxpy");
  float x[100], y[100];
  for (int i = 0; i < 100; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 1;
  }
  struct Block {
    float a;
    const float* x;
    float* y;
  } block{2, x, y};
  Geometry geometry;
  geometry.global[0] = 100;
  geometry.local[0] = 32;
  const WorkGroups groups(geometry, kernel->info().facts, 1);
  groups.run(kernel->function(), reinterpret_cast<const std::byte*>(&block), 0, groups.count(), nullptr, 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(y[i], static_cast<float>(2 * i + 1));
}

TEST(RegisteredModule, OfTwoKernelsOfOneNameTheLaterIsFoundUntilItIsTakenBack) {
  const auto module = module_of({});
  kernel_function::Described<&store_one> first("registered_twice", {}, "target");
  kernel_function::Described<&store_two> second("registered_twice", {}, "target");
  xpu_register_kernel(&first.descriptor);
  EXPECT_EQ(stored_by_kernel(*kernel_of(*module, "registered_twice")), 1);
  xpu_register_kernel(&second.descriptor);
  EXPECT_EQ(stored_by_kernel(*kernel_of(*module, "registered_twice")), 2);
  const std::vector<std::string> names = module->kernel_names();
  EXPECT_EQ(std::count(names.begin(), names.end(), "registered_twice"), 1);
  xpu_unregister_kernel(&second.descriptor);
  EXPECT_EQ(stored_by_kernel(*kernel_of(*module, "registered_twice")), 1);
  xpu_unregister_kernel(&first.descriptor);
  xpu_unregister_kernel(&first.descriptor);  // twice does no harm
  EXPECT_FALSE(module->kernel("registered_twice"));
  EXPECT_THAT(module->kernel_names(), Contains("registered_saxpy"));
}

TEST(RegisteredModule, AnUnknownKernelIsNamedAndSoAreThoseThatThereAre) {
  const auto kernel = module_of({})->kernel("sin");
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::not_found);
  EXPECT_EQ(kernel.error().message, "no kernel named 'sin' is registered in this process: there are registered_saxpy, registered_mixed");
}

TEST(RegisteredModule, ThreadsRegisterAndLookUpAtTheSameTime) {
  const auto module = module_of({});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        kernel_function::Described<&store_one> described("registered_by_thread", {});
        xpu_register_kernel(&described.descriptor);
        EXPECT_TRUE(module->kernel("registered_saxpy"));
        EXPECT_THAT(module->kernel_names(), Contains("registered_by_thread"));
        xpu_unregister_kernel(&described.descriptor);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(module->kernel("registered_by_thread"));
}

TEST(FunctionsModule, NamesAndArgumentsAreCopied) {
  std::shared_ptr<const FunctionKernel> kernel;
  {
    std::string name = "a name that is longer than what fits into a string itself", argument_name = "target of the store";
    KernelArgument argument{argument_name.c_str(), ArgumentType::pointer, ArgumentType::i32, 8, 0};
    const kernel_function::Described<&store_two> described("", {});
    KernelDescriptor descriptor = described.descriptor;
    descriptor.name = name.c_str();
    descriptor.arguments = &argument;
    ModuleSource source = source_of(ModuleFormat::functions, "mine");
    source.functions = {&descriptor, 1};
    const auto module = module_of(source);
    name.assign(name.size(), '?');
    argument_name.assign(argument_name.size(), '?');
    argument = {};
    kernel = kernel_of(*module, "a name that is longer than what fits into a string itself");
  }
  EXPECT_STREQ(kernel->info().arguments.at(0).name, "target of the store");
  EXPECT_EQ(kernel->info().arguments[0].pointee, ArgumentType::i32);
  EXPECT_EQ(kernel->native_handle(), reinterpret_cast<void*>(kernel->function()));
  EXPECT_EQ(stored_by_kernel(*kernel), 2);
}

TEST(FunctionsModule, AnUnknownKernelIsNotFoundAndAtMostTenAreNamed) {
  std::vector<KernelDescriptor> descriptors(12);
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i) names.push_back("k" + std::to_string(i));
  for (std::size_t i = 0; i < 12; ++i) descriptors[i].name = names[i].c_str();
  ModuleSource source = source_of(ModuleFormat::functions, "many");
  source.functions = descriptors;
  const auto module = module_of(source);
  EXPECT_EQ(module->kernel_names(), names);
  const auto kernel = module->kernel("k12");
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::not_found);
  EXPECT_EQ(kernel.error().message, "module 'many' has no kernel named 'k12': there are k0, k1, k2, k3, k4, k5, k6, k7, k8, k9 and 2 more");
  source.functions = {};
  EXPECT_EQ(module_of(source)->kernel("k0").error().message, "module 'many' has no kernel named 'k0': there are none");
}

TEST(FunctionsModule, ADriverCanHoldOnToAKernelThatItWasHandedByReference) {
  kernel_function::Described<&store_one> described("one", {});
  ModuleSource source = source_of(ModuleFormat::functions, "one");
  source.functions = {&described.descriptor, 1};
  auto kernel = kernel_of(*module_of(source), "one");
  const FunctionKernel& reference = *kernel;
  const std::shared_ptr<const FunctionKernel> held = reference.shared_from_this();
  kernel.reset();
  EXPECT_EQ(stored_by_kernel(*held), 1);
}

/// As /proc/self/maps says them; empty where nothing is mapped.
std::string permissions_at(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::istringstream maps(test_support::read_file("/proc/self/maps"));
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string permissions;
    std::istringstream(line) >> std::hex >> begin >> dash >> end >> permissions;
    if (begin <= wanted && wanted < end) return permissions;
  }
  return {};
}

TEST(MachineCodeModule, CodeRunsFromACopyThatIsNotWritable) {
#if defined(__x86_64__)
  // mov rax, [rdi]; mov dword [rax], 42; ret
  unsigned char code[] = {0x48, 0x8b, 0x07, 0xc7, 0x00, 42, 0, 0, 0, 0xc3};
  const KernelArgument argument{"target", ArgumentType::pointer, ArgumentType::i32, 8, 0};
  KernelDescriptor descriptor;
  descriptor.name = "answer";
  descriptor.arguments = &argument;
  descriptor.argument_count = 1;
  descriptor.argument_bytes = 8;
  ModuleSource source = source_of(ModuleFormat::machine_code, "code");
  source.code = std::as_bytes(std::span(code));
  source.functions = {&descriptor, 1};
  const auto kernel = kernel_of(*module_of(source), "answer");  // the module itself is gone
  std::memset(code, 0xcc, sizeof code);
  EXPECT_EQ(stored_by_kernel(*kernel), 42);
  EXPECT_EQ(permissions_at(kernel->native_handle()), "r-xp");
#else
  GTEST_SKIP() << "the code is for x86-64";
#endif
}

TEST(MachineCodeModule, ArgumentsOfWhichOnlySizesAreKnownAreSaidToHaveNoTypes) {
  const std::byte code[1] = {std::byte{0xc3}};
  const KernelArgument argument{"", ArgumentType::none, ArgumentType::none, 4, 0};
  KernelDescriptor descriptor;
  descriptor.name = "sized";
  descriptor.arguments = &argument;
  descriptor.argument_count = 1;
  ModuleSource source = source_of(ModuleFormat::machine_code, "code");
  source.code = code;
  source.functions = {&descriptor, 1};
  EXPECT_FALSE(kernel_of(*module_of(source), "sized")->info().has_argument_types);
}

TEST(SourceModule, KernelsAreInTheOrderOfTheTextAndOutliveTheModule) {
  const test_support::TemporaryFolder folder;
  const test_support::ScopedVariable cache("XPU_CACHE_DIR", folder.path());
  constexpr std::string_view kText = R"(
void store_three(const xpu::WorkGroup&, int* target) { *target = 3; }
XPU_KERNEL(store_three, "target");
static int counter = 0;
void count(const xpu::WorkItem&, int* target) { *target = ++counter; }
XPU_KERNEL_WITH(count, (xpu::KernelFacts{.short_and_independent = true}), "target");
)";
  ModuleSource source = source_of(ModuleFormat::source_cpp, "two.cpp");
  source.code = std::as_bytes(std::span(kText));
  std::shared_ptr<const FunctionKernel> three, count;
  {
    const auto module = module_of(source);
    EXPECT_THAT(module->kernel_names(), ElementsAre("store_three", "count"));
    three = kernel_of(*module, "store_three");
    count = kernel_of(*module, "count");
    EXPECT_EQ(module->kernel("four").error().message, "module 'two.cpp' has no kernel named 'four': there are store_three, count");
  }
  EXPECT_EQ(stored_by_kernel(*three), 3);
  EXPECT_EQ(stored_by_kernel(*count), 1);
  EXPECT_EQ(stored_by_kernel(*count), 2);
  EXPECT_STREQ(three->info().arguments.at(0).name, "target");
  EXPECT_TRUE(count->info().facts.short_and_independent);
  EXPECT_THAT(test_support::read_file("/proc/self/maps"), HasSubstr(folder.path()));
  three.reset();
  count.reset();
  EXPECT_THAT(test_support::read_file("/proc/self/maps"), Not(HasSubstr(folder.path()))) << "the library is closed with its last kernel";
}

TEST(FunctionModule, FormatsOfOtherProcessorsAreUnsupported) {
  const auto module = create_function_module(source_of(ModuleFormat::spirv, "binary"));
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::unsupported);
  EXPECT_EQ(module.error().message, "the host's processors run no modules of the format spirv");
}

}  // namespace
}  // namespace xpu::hal
