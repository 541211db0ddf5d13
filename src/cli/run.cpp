#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <new>

#include "cli/command_line.hpp"
#include "cli/console.hpp"
#include "cli/diagnose.hpp"
#include "cli/text.hpp"
#include "xpu/base/version.hpp"

namespace xpu::cli {
namespace {

template <typename Request>
int parse_and_do(const Parsed<Request>& parsed, int (*action)(const Request&)) {
  return parsed.request ? action(*parsed.request) : parsed.exit_code;
}

struct Command {
  const char* name;
  const char* summary;
  int (*run)(std::span<const std::string> arguments);
};

constexpr std::array kCommands{
    Command{"record", "Run a program and record what it does on devices.",
            [](std::span<const std::string> arguments) { return parse_and_do(parse_record(arguments), record); }},
    Command{"report", "Print a recording in figures.",
            [](std::span<const std::string> arguments) { return parse_and_do(parse_report(arguments), report); }},
    Command{"export", "Write a recording as a timeline for other tools.",
            [](std::span<const std::string> arguments) { return parse_and_do(parse_export(arguments), export_recording); }},
    Command{"check", "Say whether a recording is complete, or a trace right.",
            [](std::span<const std::string> arguments) { return parse_and_do(parse_check(arguments), check); }},
    Command{"info", "List drivers and devices.",
            [](std::span<const std::string> arguments) { return parse_and_do(parse_info(arguments), info); }},
};

const Command* find_command(std::string_view name) {
  for (const Command& command : kCommands) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

std::string help_text() {
  std::string text =
      "xpu records programs that use OpenCL or libxpu, on any driver, and says what ran on the device and how long it took.\n\nUsage: xpu "
      "COMMAND ...\n\n";
  text += "Commands:\n";
  for (const Command& command : kCommands) text += fmt::format("  {:<8} {}\n", command.name, command.summary);
  text += R"(
Options:
  -h, --help    Print this and exit; xpu COMMAND --help tells all about one command.
  --version     Print the version and exit.

Examples:
  xpu record -- ./program       (writes program-DATE-TIME.xpu)
  xpu report                    (the newest recording in this folder)
  xpu export                    (a timeline for https://ui.perfetto.dev)
  xpu info                      (the devices that programs of libxpu get)
)";
  return text;
}

int print_or_fail(const std::string& text) {
  const auto printed = print(text);
  if (printed) return kOk;
  say("{}", printed.error().message);
  return kFailed;
}

/// A closed standard descriptor would be given to the next file that is opened, and what we say would land in it. Closed at exec, so that a
/// recorded program finds it closed as we did.
void occupy_closed_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) != -1) continue;
    // The lowest free number is this one.
    static_cast<void>(open("/dev/null", O_RDWR | O_CLOEXEC));
  }
}

int run_words(std::span<const std::string> words) {
  if (words.empty()) {
    say("which command? See xpu --help");
    return kUsage;
  }
  const std::string& word = words.front();
  if (word == "-h" || word == "--help" || (word == "help" && words.size() == 1)) return print_or_fail(help_text());
  if (word == "--version") return print_or_fail(fmt::format("xpu {}\n", version()));
  if (word == kTryLayerArgument && words.size() == 2) return run_layer_trial(words[1].c_str());
  if (word == "help") {
    const Command* asked = find_command(words[1]);
    const std::string help = "--help";
    if (asked != nullptr) return asked->run(std::span(&help, 1));
  }
  const Command* command = find_command(word == "help" ? words[1] : word);
  if (command == nullptr) {
    say("'{}' is not a command; the commands are record, report, export, check and info (see xpu --help)",
        word == "help" ? words[1] : word);
    return kUsage;
  }
  // What is printed may have no reader any more. A recorded program gets the disposition that this process got, so record leaves it alone.
  if (word != "record") signal(SIGPIPE, SIG_IGN);
  return command->run(words.subspan(1));
}

}  // namespace

int run(int argc, char** argv) {
  occupy_closed_descriptors();
  try {
    return run_words(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::bad_alloc&) {
    say("out of memory");
  }
  return argc > 1 && std::strcmp(argv[1], "record") == 0 ? kRecordFailed : kFailed;
}

}  // namespace xpu::cli
