//! Filters for system calls. The filter for commands lists the calls that it refuses: commands are arbitrary programs,
//! and a list of allowed calls would break one of them with every new C library. The filter for Toolpost's own workers
//! lists the calls that it allows.

use std::collections::BTreeMap;

use libc::{c_long, c_ulong};
use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule, TargetArch, sock_filter,
};

#[cfg(target_arch = "x86_64")]
pub(crate) const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
pub(crate) const ARCHITECTURE: TargetArch = TargetArch::aarch64;
#[cfg(target_arch = "riscv64")]
pub(crate) const ARCHITECTURE: TargetArch = TargetArch::riscv64;

/// Refused with any arguments: access to other processes, mounts, namespaces, kernel programs and keys, ways around
/// this filter, clocks, and calls for administrators.
const REFUSED: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_quotactl,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// Calls that set a file's mode, and the index of that argument.
const LENDING: &[(c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];
/// The number is the same on all architectures. Some C libraries do not have the constant yet.
const FCHMODAT2: c_long = 452;

/// Calls with flags or a mode behind a pointer, which a filter cannot read. The filter returns that they do not exist,
/// and programs fall back to the older calls.
const HIDDEN: [c_long; 2] = [libc::SYS_clone3, libc::SYS_openat2];

/// The sockets that a command may open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketAccess {
    /// Internet sockets and local sockets; the network namespace decides where they lead. Sockets to a hypervisor are
    /// refused, because no namespace confines them.
    Usual,
    /// Only connected pairs.
    Pairs,
}

/// Installs the filter for commands. It is the last confine before the program is executed.
pub(crate) fn refuse(sockets: SocketAccess) -> Result<(), Errno> {
    let filter = build(
        deny_list(sockets)?,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
    )?;
    apply(&pretend_missing())?;
    apply(&filter)
}

/// Installs the filter for workers. Calls that are not listed are refused.
pub(crate) fn allow_only(calls: &[c_long]) -> Result<(), Errno> {
    let mut rules: SyscallRules = calls.iter().map(|call| (*call, Vec::new())).collect();
    // `abort` signals its own process. Signals to other processes stay refused.
    let own = u64::from(std::process::id());
    let to_itself = Rule::new(vec![test(0, Is::Eq, own)?]).map_err(|_| Errno::INVAL)?;
    rules.insert(libc::SYS_tgkill, vec![to_itself]);
    let filter = build(
        rules,
        SeccompAction::Errno(libc::EPERM as u32),
        SeccompAction::Allow,
    )?;
    apply(&pretend_missing())?;
    apply(&filter)
}

fn build(
    rules: SyscallRules,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram, Errno> {
    let filter =
        SeccompFilter::new(rules, otherwise, matched, ARCHITECTURE).map_err(|_| Errno::INVAL)?;
    filter.try_into().map_err(|_| Errno::INVAL)
}

fn apply(program: &BpfProgram) -> Result<(), Errno> {
    seccompiler::apply_filter(program).map_err(|error| match error {
        seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => {
            Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EINVAL))
        }
        _ => Errno::INVAL,
    })
}

type SyscallRules = BTreeMap<c_long, Vec<Rule>>;

fn deny_list(sockets: SocketAccess) -> Result<SyscallRules, Errno> {
    let mut rules: SyscallRules = REFUSED
        .iter()
        .chain(REFUSED_HERE)
        .map(|call| (*call, Vec::new()))
        .collect();
    let mut when = |call: c_long, conditions: Vec<Condition>| {
        let rule = Rule::new(conditions).map_err(|_| Errno::INVAL)?;
        rules.entry(call).or_default().push(rule);
        Ok::<(), Errno>(())
    };
    for flag in [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ] {
        when(libc::SYS_clone, vec![masked(0, flag as u64, flag as u64)?])?;
    }
    // Typing into the terminal that the host was started from.
    for command in [libc::TIOCSTI as c_ulong, libc::TIOCLINUX as c_ulong] {
        when(libc::SYS_ioctl, vec![test(1, Is::Eq, command)?])?;
    }
    // Devices. Named pipes are created by the same call and stay allowed.
    for kind in [libc::S_IFCHR, libc::S_IFBLK] {
        when(
            libc::SYS_mknodat,
            vec![masked(2, u64::from(libc::S_IFMT), u64::from(kind))?],
        )?;
        #[cfg(target_arch = "x86_64")]
        when(
            libc::SYS_mknod,
            vec![masked(1, u64::from(libc::S_IFMT), u64::from(kind))?],
        )?;
    }
    // Set-user-ID and set-group-ID programs run with their owner's rights. They have no effect in the sandbox, but
    // files in a root can also be run outside of it.
    for bit in [libc::S_ISUID, libc::S_ISGID].map(u64::from) {
        let lends = |argument| masked(argument, bit, bit);
        for (call, mode) in LENDING {
            when(*call, vec![lends(*mode)?])?;
        }
        for flag in [libc::O_CREAT as u64, libc::O_TMPFILE as u64] {
            when(libc::SYS_openat, vec![masked(2, flag, flag)?, lends(3)?])?;
            #[cfg(target_arch = "x86_64")]
            when(libc::SYS_open, vec![masked(1, flag, flag)?, lends(2)?])?;
        }
    }
    match sockets {
        SocketAccess::Pairs => {
            // A datagram socket of a pair can send to any socket with a path.
            when(
                libc::SYS_socketpair,
                vec![masked(1, 0xf, libc::SOCK_DGRAM as u64)?],
            )?;
            rules.insert(libc::SYS_socket, Vec::new());
        }
        SocketAccess::Usual => {
            let usual = [
                libc::AF_UNIX,
                libc::AF_INET,
                libc::AF_INET6,
                libc::AF_NETLINK,
            ];
            let others = usual
                .iter()
                .map(|family| test(0, Is::Ne, *family as u64))
                .collect::<Result<_, _>>()?;
            when(libc::SYS_socket, others)?;
            // Only the routing protocol of this family is allowed, which programs use to list addresses. The others
            // configure the kernel.
            let netlink = test(0, Is::Eq, libc::AF_NETLINK as u64)?;
            when(
                libc::SYS_socket,
                vec![netlink, test(2, Is::Ne, libc::NETLINK_ROUTE as u64)?],
            )?;
        }
    }
    Ok(rules)
}

fn test(argument: u8, is: Is, value: u64) -> Result<Condition, Errno> {
    Condition::new(argument, Width::Dword, is, value).map_err(|_| Errno::INVAL)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<Condition, Errno> {
    test(argument, Is::MaskedEq(mask), value)
}

/// Makes calls look missing. The second numbering of x86-64 would offer every call under another number, so all of it
/// is missing, too.
fn pretend_missing() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    const SECOND_NUMBERING: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD, 0, 0, 0),
        step(IF_EQUAL, 3, 0, HIDDEN[0] as u32),
        step(IF_EQUAL, 2, 0, HIDDEN[1] as u32),
        step(IF_AT_LEAST, 1, 0, SECOND_NUMBERING),
        step(RETURN, 0, 0, ALLOW),
        step(RETURN, 0, 0, ERRNO | libc::ENOSYS as u32),
    ]
}
