//! Decoded instructions: what the machine runs. One slot of a frame per register, constant and
//! special register.

/// What an instruction does. `d`, `a`, `b`, `c` are the slots of [`Instruction`]; `m` is its `imm`
/// as a mask of the result's bits; `w` its `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Op {
    // 32-bit floats, rounded to nearest even.
    AddF,
    SubF,
    MulF,
    FmaF,
    DivF,
    SqrtF,
    NegF,
    AbsF,
    MinF,
    MaxF,
    /// Rounds to an integer in a float; `flags` is a rounding mode.
    RoundF,
    /// Clamps to 0..1.
    SaturateF,
    /// Sum, difference, product or fused product and sum, rounded by the mode in `flags`.
    AddDirectedF,
    SubDirectedF,
    MulDirectedF,
    FmaDirectedF,
    EqF,
    LtF,
    LeF,
    /// Not (a = b): true for NaN.
    NotEqF,
    /// Not (a < b): true for NaN.
    NotLtF,
    /// Not (a <= b): true for NaN.
    NotLeF,
    /// Neither is NaN.
    OrderedF,
    TestF,
    CopySignF,
    FloatFromU,
    FloatFromS,
    /// `count` destination bits, `flags` rounding mode.
    UFromFloat,
    SFromFloat,
    /// 2^a, log2 a, sin a, cos a, 1/sqrt a, tanh a by `flags`; correctly rounded, for those who
    /// allow approximations.
    ApproximateF,
    // 64-bit floats.
    AddD,
    SubD,
    MulD,
    FmaD,
    DivD,
    SqrtD,
    NegD,
    AbsD,
    MinD,
    MaxD,
    RoundD,
    EqD,
    LtD,
    LeD,
    NotEqD,
    NotLtD,
    NotLeD,
    OrderedD,
    DoubleFromU,
    DoubleFromS,
    UFromDouble,
    SFromDouble,
    DoubleFromFloat,
    FloatFromDouble,
    ApproximateD,
    // Integers.
    Add,
    Sub,
    Mul,
    MulAdd,
    MulWideS,
    MulHighU,
    MulHighS,
    MulAddHighU,
    MulAddHighS,
    /// a * b + c of w-bit numbers, signed, into 2w bits.
    MulAddWideS,
    /// With the carry flag in slot [`SLOT_CARRY`]; `flags`: 1 takes it in, 2 puts it out.
    AddCarry,
    SubCarry,
    DivU,
    DivS,
    RemU,
    RemS,
    MinU,
    MaxU,
    MinS,
    MaxS,
    AbsS,
    SadU,
    SadS,
    And,
    Or,
    Xor,
    Not,
    Shl,
    ShrU,
    ShrS,
    FunnelL,
    FunnelR,
    FunnelLClamp,
    FunnelRClamp,
    Brev,
    Popc,
    Clz,
    FindU,
    FindS,
    FieldU,
    FieldS,
    FieldInsert,
    Permute,
    /// Any function of three bits; `flags` is its table.
    Logic3,
    Eq,
    Ne,
    LtU,
    LeU,
    LtS,
    LeS,
    Move,
    Select,
    /// c's sign bit chooses b.
    SelectSign,
    /// From `bits` to `count` bits; `flags`: 1 source signed, 2 result signed.
    Convert,
    FloatFromHalf,
    HalfFromFloat,
    Pack,
    Unpack,
    // Addresses: slots plus windows.
    /// d = a | imm
    ToGeneric,
    /// d = a without its window
    FromGeneric,
    /// Whether a generic address is in the window `imm`; `flags`: 1 asks for global memory instead.
    IsSpace,
    // Memory: address a + imm, `bits` an element, `count` elements; `flags`: 1 sign-extend to `c`
    // bits.
    Load,
    LoadMany,
    LoadStack,
    LoadStackMany,
    LoadShared,
    LoadSharedMany,
    Store,
    StoreMany,
    StoreStack,
    StoreStackMany,
    StoreShared,
    StoreSharedMany,
    /// `flags`: an [`Atomic`]; `count`: 1 for shared memory; b, c operands.
    Atomic,
    // Control. `imm` is the target.
    Branch,
    BranchIf,
    BranchUnless,
    /// `d` is a list of targets, `b` its length.
    BranchTable,
    Call,
    Return,
    Exit,
    Trap,
    Nothing,
    // Between threads.
    Barrier,
    WarpBarrier,
    Shuffle,
    Vote,
    Unsupported,
}

/// What an atomic instruction does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Atomic {
    Add,
    MinU,
    MaxU,
    MinS,
    MaxS,
    And,
    Or,
    Xor,
    Exchange,
    CompareExchange,
    Increment,
    Decrement,
}

impl Atomic {
    pub(crate) const ALL: [Atomic; 12] = [
        Atomic::Add,
        Atomic::MinU,
        Atomic::MaxU,
        Atomic::MinS,
        Atomic::MaxS,
        Atomic::And,
        Atomic::Or,
        Atomic::Xor,
        Atomic::Exchange,
        Atomic::CompareExchange,
        Atomic::Increment,
        Atomic::Decrement,
    ];
}

/// `flags` of the roundings to integers.
pub(crate) mod rounding {
    pub(crate) const NEAREST: u8 = 0;
    pub(crate) const ZERO: u8 = 1;
    pub(crate) const DOWN: u8 = 2;
    pub(crate) const UP: u8 = 3;
}

/// Modes of shuffles and votes, in `flags`.
pub(crate) mod warp {
    pub(crate) const UP: u8 = 0;
    pub(crate) const DOWN: u8 = 1;
    pub(crate) const BUTTERFLY: u8 = 2;
    pub(crate) const INDEX: u8 = 3;
    pub(crate) const ALL: u8 = 0;
    pub(crate) const ANY: u8 = 1;
    pub(crate) const UNIFORM: u8 = 2;
    pub(crate) const BALLOT: u8 = 3;
}

/// Slot of the frame's first byte on the thread's stack.
pub(crate) const SLOT_FRAME: u32 = 0;
/// Slot of the carry flag.
pub(crate) const SLOT_CARRY: u32 = 1;
/// Slot that results go to which nobody wants.
pub(crate) const SLOT_SINK: u32 = 2;

/// One instruction, 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    pub(crate) op: Op,
    pub(crate) bits: u8,
    pub(crate) count: u8,
    pub(crate) flags: u8,
    pub(crate) d: u32,
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) c: u32,
    pub(crate) imm: u64,
}

impl Instruction {
    pub(crate) fn new(op: Op) -> Instruction {
        Instruction { op, bits: 32, count: 1, flags: 0, d: SLOT_SINK, a: 0, b: 0, c: 0, imm: 0 }
    }
}

const _: () = assert!(size_of::<Instruction>() == 32);

/// Registers that the machine fills in when a thread starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Thread(u8),
    Block(u8),
    Threads(u8),
    Blocks(u8),
    Lane,
    Warp,
    Warps,
    LanesEqual,
    LanesBelow,
    LanesUpTo,
    LanesAbove,
    LanesFrom,
    SharedBytes,
}

/// A slot that holds the address of a module's variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relocation {
    pub(crate) slot: u32,
    pub(crate) variable: u32,
    pub(crate) addend: u64,
}

/// Where bytes of a call go: from the caller's frame to the callee's, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// One call: its callee, and what it passes.
#[derive(Clone, Debug)]
pub(crate) struct CallSite {
    pub(crate) name: String,
    pub(crate) line: u32,
    /// Index of the function; none where the module only declares it.
    pub(crate) callee: Option<u32>,
    pub(crate) arguments: Vec<Place>,
    pub(crate) results: Vec<Place>,
}

/// A kernel or function, decoded.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) code: Vec<Instruction>,
    /// Line of each instruction.
    pub(crate) lines: Vec<u32>,
    /// What the slots hold when the function begins.
    pub(crate) image: Vec<u64>,
    /// Slots that instructions may read before they write them. Of the others, instructions write
    /// none (constants), or each before it is read.
    pub(crate) given: Vec<u32>,
    pub(crate) specials: Vec<(u32, Special)>,
    pub(crate) relocations: Vec<Relocation>,
    /// Operands of vectors, and targets of branch tables.
    pub(crate) lists: Vec<u32>,
    pub(crate) calls: Vec<CallSite>,
    pub(crate) parameters: Vec<Place>,
    pub(crate) results: Vec<Place>,
    /// Bytes of its stack frame, a multiple of 16.
    pub(crate) frame_bytes: u32,
    /// It, or what it calls, waits for other threads.
    pub(crate) is_cooperative: bool,
    /// The first instruction, in it or in what it calls, by which threads of a block work together
    /// ([`crate::Kernel::exchange`]).
    pub(crate) exchange: Option<String>,
    /// It calls functions by their addresses: any function of the module.
    pub(crate) calls_pointers: bool,
}
