
type __ = Obj.t
let __ = let rec f _ = Obj.repr f in Obj.repr f

(** val negb : bool -> bool **)

let negb = function
| true -> false
| false -> true

(** val fst : ('a1 * 'a2) -> 'a1 **)

let fst = function
| (x, _) -> x

(** val snd : ('a1 * 'a2) -> 'a2 **)

let snd = function
| (_, y) -> y



(** val sub : int -> int -> int **)

let rec sub = fun n m -> Stdlib.max 0 (n-m)

type reflect =
| ReflectT
| ReflectF

module Option =
 struct
  (** val apply : ('a1 -> 'a2) -> 'a2 -> 'a1 option -> 'a2 **)

  let apply f x = function
  | Some y -> f y
  | None -> x
 end

(** val isSome : 'a1 option -> bool **)

let isSome = function
| Some _ -> true
| None -> false

(** val iffP : bool -> reflect -> reflect **)

let iffP _ pb =
  let _evar_0_ = fun _ _ _ -> ReflectT in
  let _evar_0_0 = fun _ _ _ -> ReflectF in
  (match pb with
   | ReflectT -> _evar_0_ __ __ __
   | ReflectF -> _evar_0_0 __ __ __)

(** val idP : bool -> reflect **)

let idP = function
| true -> ReflectT
| false -> ReflectF

type 't pred = 't -> bool

type 't predType = { topred : (__ -> 't pred) }

type 't pred_sort = __

type 't rel = 't -> 't pred

type 't mem_pred =
| Mem of 't pred

(** val pred_of_mem : 'a1 mem_pred -> 'a1 pred_sort **)

let pred_of_mem = function
| Mem p -> Obj.magic p

(** val in_mem : 'a1 -> 'a1 mem_pred -> bool **)

let in_mem x mp =
  Obj.magic pred_of_mem mp x

(** val mem : 'a1 predType -> 'a1 pred_sort -> 'a1 mem_pred **)

let mem pT a =
  let { topred = toP } = pT in Mem (fun x -> toP a x)

module Equality =
 struct
  type 't axiom = 't -> 't -> reflect

  type 't mixin_of = { op : 't rel; mixin_of__1 : 't axiom }

  (** val op : 'a1 mixin_of -> 'a1 rel **)

  let op m0 =
    m0.op

  type coq_type = { coq_type__0 : __ mixin_of }

  type sort = __

  (** val coq_class : coq_type -> sort mixin_of **)

  let coq_class cT =
    cT.coq_type__0
 end

(** val eq_op : Equality.coq_type -> Equality.sort rel **)

let eq_op t =
  (Equality.coq_class t).Equality.op

(** val eqP : Equality.coq_type -> Equality.sort Equality.axiom **)

let eqP t =
  let _evar_0_ = fun __top_assumption_ ->
    let _evar_0_ = fun _ a -> a in
    let { Equality.op = op0; Equality.mixin_of__1 = a } = __top_assumption_ in
    _evar_0_ op0 a
  in
  let { Equality.coq_type__0 = m0 } = t in _evar_0_ m0

(** val opt_eq :
    Equality.coq_type -> Equality.sort option -> Equality.sort option -> bool **)

let opt_eq t u v =
  Option.apply (fun x -> Option.apply (eq_op t x) false v) (negb (isSome v)) u

(** val opt_eqP : Equality.coq_type -> Equality.sort option Equality.axiom **)

let opt_eqP t _top_assumption_ =
  let _evar_0_ = fun x __top_assumption_ ->
    let _evar_0_ = fun y -> iffP (eq_op t x y) (eqP t x y) in
    let _evar_0_0 = ReflectF in
    (match __top_assumption_ with
     | Some a -> _evar_0_ a
     | None -> _evar_0_0)
  in
  let _evar_0_0 = fun __top_assumption_ ->
    let _evar_0_0 = fun _ -> ReflectF in
    let _evar_0_1 = ReflectT in
    (match __top_assumption_ with
     | Some a -> _evar_0_0 a
     | None -> _evar_0_1)
  in
  (match _top_assumption_ with
   | Some a -> _evar_0_ a
   | None -> _evar_0_0)

(** val option_eqMixin :
    Equality.coq_type -> Equality.sort option Equality.mixin_of **)

let option_eqMixin t =
  { Equality.op = (opt_eq t); Equality.mixin_of__1 = (opt_eqP t) }

(** val option_eqType : Equality.coq_type -> Equality.coq_type **)

let option_eqType t =
  { Equality.coq_type__0 = (Obj.magic option_eqMixin t) }

(** val eqn : int -> int -> bool **)

let rec eqn m0 n =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ ->
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> true)
      (fun _ -> false)
      n)
    (fun m' ->
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> false)
      (fun n' -> eqn m' n')
      n)
    m0

(** val eqnP : int Equality.axiom **)

let eqnP n m0 =
  iffP (eqn n m0) (idP (eqn n m0))

(** val nat_eqMixin : int Equality.mixin_of **)

let nat_eqMixin =
  { Equality.op = eqn; Equality.mixin_of__1 = eqnP }

(** val nat_eqType : Equality.coq_type **)

let nat_eqType =
  { Equality.coq_type__0 = (Obj.magic nat_eqMixin) }

(** val subn_rec : int -> int -> int **)

let subn_rec =
  sub

(** val subn : int -> int -> int **)

let subn =
  subn_rec

(** val leq : int -> int -> bool **)

let leq m0 n =
  eq_op nat_eqType (Obj.magic subn m0 n) (Obj.magic 0)

(** val size : 'a1 list -> int **)

let rec size = function
| [] -> 0
| _ :: s' -> Stdlib.Int.succ (size s')

(** val nilp : 'a1 list -> bool **)

let nilp s =
  eq_op nat_eqType (Obj.magic size s) (Obj.magic 0)

(** val ohead : 'a1 list -> 'a1 option **)

let ohead = function
| [] -> None
| x :: _ -> Some x

(** val behead : 'a1 list -> 'a1 list **)

let behead = function
| [] -> []
| _ :: s' -> s'

(** val cat : 'a1 list -> 'a1 list -> 'a1 list **)

let rec cat s1 s2 =
  match s1 with
  | [] -> s2
  | x :: s1' -> x :: (cat s1' s2)

(** val rcons : 'a1 list -> 'a1 -> 'a1 list **)

let rec rcons s z =
  match s with
  | [] -> z :: []
  | x :: s' -> x :: (rcons s' z)

(** val filter : 'a1 pred -> 'a1 list -> 'a1 list **)

let rec filter a = function
| [] -> []
| x :: s' -> if a x then x :: (filter a s') else filter a s'

(** val eqseq :
    Equality.coq_type -> Equality.sort list -> Equality.sort list -> bool **)

let rec eqseq t s1 s2 =
  match s1 with
  | [] -> (match s2 with
           | [] -> true
           | _ :: _ -> false)
  | x1 :: s1' ->
    (match s2 with
     | [] -> false
     | x2 :: s2' -> (&&) (eq_op t x1 x2) (eqseq t s1' s2'))

(** val eqseqP : Equality.coq_type -> Equality.sort list Equality.axiom **)

let eqseqP t _top_assumption_ =
  let _evar_0_ = fun __top_assumption_ ->
    let _evar_0_ = ReflectT in
    let _evar_0_0 = fun _ _ -> ReflectF in
    (match __top_assumption_ with
     | [] -> _evar_0_
     | a :: l -> _evar_0_0 a l)
  in
  let _evar_0_0 = fun x1 s1 iHs __top_assumption_ ->
    let _evar_0_0 = ReflectF in
    let _evar_0_1 = fun x2 s2 ->
      let __top_assumption_0 = eqP t x1 x2 in
      let _evar_0_1 = fun _ -> iffP (eqseq t s1 s2) (iHs s2) in
      let _evar_0_2 = fun _ -> ReflectF in
      (match __top_assumption_0 with
       | ReflectT -> _evar_0_1 __
       | ReflectF -> _evar_0_2 __)
    in
    (match __top_assumption_ with
     | [] -> _evar_0_0
     | a :: l -> _evar_0_1 a l)
  in
  let rec f = function
  | [] -> _evar_0_
  | y :: l0 -> _evar_0_0 y l0 (f l0)
  in f _top_assumption_

(** val seq_eqMixin :
    Equality.coq_type -> Equality.sort list Equality.mixin_of **)

let seq_eqMixin t =
  { Equality.op = (eqseq t); Equality.mixin_of__1 = (eqseqP t) }

(** val seq_eqType : Equality.coq_type -> Equality.coq_type **)

let seq_eqType t =
  { Equality.coq_type__0 = (Obj.magic seq_eqMixin t) }

(** val mem_seq :
    Equality.coq_type -> Equality.sort list -> Equality.sort -> bool **)

let rec mem_seq t = function
| [] -> (fun _ -> false)
| y :: s' -> let p = mem_seq t s' in (fun x -> (||) (eq_op t x y) (p x))

type seq_eqclass = Equality.sort list

(** val pred_of_seq :
    Equality.coq_type -> seq_eqclass -> Equality.sort pred_sort **)

let pred_of_seq t s =
  Obj.magic mem_seq t s

(** val seq_predType : Equality.coq_type -> Equality.sort predType **)

let seq_predType t =
  { topred = (Obj.magic pred_of_seq t) }

(** val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list **)

let rec map f = function
| [] -> []
| x :: s' -> (f x) :: (map f s')

(** val pmap : ('a1 -> 'a2 option) -> 'a1 list -> 'a2 list **)

let rec pmap f = function
| [] -> []
| x :: s' -> let r = pmap f s' in Option.apply (fun x0 -> x0 :: r) r (f x)

(** val foldr : ('a1 -> 'a2 -> 'a2) -> 'a2 -> 'a1 list -> 'a2 **)

let rec foldr f z0 = function
| [] -> z0
| x :: s' -> f x (foldr f z0 s')

(** val flatten : 'a1 list list -> 'a1 list **)

let flatten s =
  foldr cat [] s

type 'f numbers = { zero : 'f; one : 'f; add : ('f -> 'f -> 'f);
                    subtract : ('f -> 'f -> 'f); mul : ('f -> 'f -> 'f);
                    div : ('f -> 'f -> 'f); max : ('f -> 'f -> 'f);
                    min : ('f -> 'f -> 'f); equal : ('f -> 'f -> bool) }

(** val sum : 'a1 numbers -> 'a2 list -> ('a2 -> 'a1) -> 'a1 **)

let sum n vocabulary g =
  foldr (fun t total -> n.add (g t) total) n.zero vocabulary

type ('f, 'a) m = ('a -> 'f) -> 'f

(** val ret : 'a2 -> ('a1, 'a2) m **)

let ret a f =
  f a

(** val bind : ('a1, 'a2) m -> ('a2 -> ('a1, 'a3) m) -> ('a1, 'a3) m **)

let bind m0 k f =
  m0 (fun a -> k a f)

(** val bind2 :
    ('a1, 'a2 * 'a3) m -> ('a2 -> 'a3 -> ('a1, 'a4) m) -> ('a1, 'a4) m **)

let bind2 m0 k f =
  m0 (fun o -> k (fst o) (snd o) f)

(** val draw : 'a1 numbers -> 'a2 list -> ('a2 -> 'a1) -> ('a1, 'a2) m **)

let draw n vocabulary r f =
  sum n vocabulary (fun t -> n.mul (r t) (f t))

(** val coin : 'a1 numbers -> 'a1 -> ('a1, bool) m **)

let coin n h f =
  n.add (n.mul h (f true)) (n.mul (n.subtract n.one h) (f false))

type ('f, 't) model = 't list -> 't -> 'f

(** val walk :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> int -> 'a2 list -> ('a1,
    'a2 list) m **)

let rec walk n vocabulary r n0 c =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> ret [])
    (fun n' ->
    bind (draw n vocabulary (r c)) (fun t ->
      bind (walk n vocabulary r n' (rcons c t)) (fun x -> ret (t :: x))))
    n0

(** val path_prob :
    'a1 numbers -> ('a1, 'a2) model -> 'a2 list -> 'a2 list -> 'a1 **)

let rec path_prob n r c = function
| [] -> n.one
| t :: x' -> n.mul (r c t) (path_prob n r (rcons c t) x')

type ('f, 't) verifier = 't list -> ('f, 't list * 't) m

(** val iteration :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> int -> ('a1, 'a2) verifier
    -> ('a1, 'a2 list * 'a2) m **)

let iteration n vocabulary q l verify =
  bind (walk n vocabulary q l []) verify

type ('f, 't) convention = { ratio0 : ('f, 't) model; h0 : ('t list -> 'f);
                             res0 : ('f, 't) model }

(** val ratio :
    'a1 numbers -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1, 'a2)
    convention -> 'a2 list -> 'a2 -> 'a1 **)

let ratio n p q u c t =
  if n.equal (q c t) n.zero then u.ratio0 c t else n.div (p c t) (q c t)

(** val gain :
    'a1 numbers -> ('a1, 'a2) model -> ('a1, 'a2) model -> 'a2 list -> 'a1 ->
    'a2 -> 'a1 **)

let gain n p q c w t =
  n.max (n.subtract (n.mul w (p c t)) (q c t)) n.zero

(** val total_gain :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> 'a2
    list -> 'a1 -> 'a1 **)

let total_gain n vocabulary p q c w =
  sum n vocabulary (gain n p q c w)

(** val residual :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> 'a2 list -> 'a1 -> 'a2 -> 'a1 **)

let residual n vocabulary p q u c w t =
  if n.equal (total_gain n vocabulary p q c w) n.zero
  then u.res0 c t
  else n.div (gain n p q c w t) (total_gain n vocabulary p q c w)

(** val correction :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> int -> 'a2 list -> 'a1 -> ('a1, 'a2) m **)

let correction n vocabulary p q u l s w =
  if eqn (size s) l
  then draw n vocabulary (p s)
  else draw n vocabulary (residual n vocabulary p q u s w)

(** val token_loop :
    'a1 numbers -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1, 'a2)
    convention -> 'a2 list -> 'a2 list -> ('a1, 'a2 list) m **)

let rec token_loop n p q u c = function
| [] -> ret c
| t :: rest' ->
  bind (coin n (n.min (ratio n p q u c t) n.one)) (fun accepted ->
    if accepted then token_loop n p q u (rcons c t) rest' else ret c)

(** val token :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> int -> 'a2 list -> ('a1, 'a2 list * 'a2) m **)

let token n vocabulary p q u l x =
  bind (token_loop n p q u [] x) (fun s ->
    bind (correction n vocabulary p q u l s n.one) (fun y -> ret (s, y)))

(** val next_weight :
    'a1 numbers -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1, 'a2)
    convention -> 'a2 list -> 'a1 -> 'a2 -> 'a1 **)

let next_weight n p q u c w t =
  n.min (n.mul w (ratio n p q u c t)) n.one

(** val accept_prob :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> 'a2 list -> 'a1 -> 'a1 **)

let accept_prob n vocabulary p q u c w =
  let gain0 = total_gain n vocabulary p q c w in
  let denominator = n.subtract (n.add gain0 n.one) w in
  if n.equal denominator n.zero then u.h0 c else n.div gain0 denominator

(** val block_loop :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> 'a2 list -> 'a2 list -> 'a1 -> ('a2 list * 'a1) ->
    ('a1, 'a2 list * 'a1) m **)

let rec block_loop n vocabulary p q u c rest w best =
  match rest with
  | [] -> ret best
  | t :: rest' ->
    let c' = rcons c t in
    let w' = next_weight n p q u c w t in
    let h =
      match rest' with
      | [] -> w'
      | _ :: _ -> accept_prob n vocabulary p q u c' w'
    in
    bind (coin n h) (fun accepted ->
      block_loop n vocabulary p q u c' rest' w'
        (if accepted then (c', w') else best))

(** val block :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> int -> 'a2 list -> ('a1, 'a2 list * 'a2) m **)

let block n vocabulary p q u l x =
  bind2 (block_loop n vocabulary p q u [] x n.one ([], n.one)) (fun s w ->
    bind (correction n vocabulary p q u l s w) (fun y -> ret (s, y)))

(** val by_ratio :
    'a1 numbers -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1, 'a2)
    convention -> ('a2 -> 'a2 -> bool) -> 'a2 list -> 'a2 -> 'a2 -> bool **)

let by_ratio n p q u earlier c t t' =
  let a = ratio n p q u c t in
  let b = ratio n p q u c t' in
  if n.equal a b then earlier t t' else n.equal (n.max a b) b

(** val path_lower :
    ('a1 list -> 'a1 -> 'a1 -> bool) -> 'a1 list -> 'a1 list -> 'a1 list ->
    bool **)

let rec path_lower lower c x y =
  match x with
  | [] -> false
  | t :: x' ->
    (match y with
     | [] -> false
     | t' :: y' ->
       if lower c t t'
       then true
       else if lower c t' t then false else path_lower lower (rcons c t) x' y')

(** val highest :
    'a1 numbers -> 'a2 list -> ('a2 list -> 'a2 -> 'a2 -> bool) -> ('a1, 'a2)
    model -> int -> int -> ('a1, 'a2 list) m **)

let rec highest n vocabulary lower q l more =
  bind (walk n vocabulary q l []) (fun x ->
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> ret x)
      (fun more' ->
      bind (highest n vocabulary lower q l more') (fun y ->
        ret (if path_lower lower [] x y then y else x)))
      more)

(** val mass_below :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a2 list -> 'a2 -> 'a2 ->
    bool) -> 'a1 -> 'a2 list -> 'a2 list -> 'a1 **)

let rec mass_below n vocabulary q lower weight c = function
| [] -> n.zero
| t :: a' ->
  n.add
    (n.mul weight
      (sum n vocabulary (fun t' -> if lower c t' t then q c t' else n.zero)))
    (mass_below n vocabulary q lower (n.mul weight (q c t)) (rcons c t) a')

(** val power : 'a1 numbers -> 'a1 -> int -> 'a1 **)

let rec power n a k =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> n.one)
    (fun k' -> n.mul a (power n a k'))
    k

(** val skewed :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a2 list -> 'a2 -> 'a2 ->
    bool) -> int -> 'a2 list -> 'a1 **)

let skewed n vocabulary q lower k a =
  let below = mass_below n vocabulary q lower n.one [] a in
  n.subtract (power n (n.add (path_prob n q [] a) below) k) (power n below k)

(** val rows_of :
    'a1 numbers -> ('a1, 'a2) model -> ('a2 list -> 'a1) -> ('a1, 'a2) model **)

let rows_of n q mass c t =
  if n.equal (mass c) n.zero then q c t else n.div (mass (rcons c t)) (mass c)

(** val greedy_multipath :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> ('a2 list -> 'a2 -> 'a2 -> bool) -> int -> int ->
    ('a1, 'a2 list * 'a2) m **)

let greedy_multipath n vocabulary p q u lower l more =
  bind (highest n vocabulary lower q l more) (fun x ->
    block n vocabulary p
      (rows_of n q (skewed n vocabulary q lower (Stdlib.Int.succ more))) u l x)

(** val first_or_highest :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a2 list -> 'a2 -> 'a2 ->
    bool) -> 'a1 -> int -> int -> ('a1, 'a2 list) m **)

let first_or_highest n vocabulary q lower lambda l more =
  bind (walk n vocabulary q l []) (fun x ->
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> ret x)
      (fun more' ->
      bind (highest n vocabulary lower q l more') (fun y ->
        bind (coin n lambda) (fun first ->
          ret (if first then x else if path_lower lower [] x y then y else x))))
      more)

(** val mixed_mass :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a2 list -> 'a2 -> 'a2 ->
    bool) -> 'a1 -> int -> 'a2 list -> 'a1 **)

let mixed_mass n vocabulary q lower lambda k a =
  n.add (n.mul lambda (path_prob n q [] a))
    (n.mul (n.subtract n.one lambda) (skewed n vocabulary q lower k a))

(** val mixed_multipath :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> ('a2 list -> 'a2 -> 'a2 -> bool) -> 'a1 -> int -> int
    -> ('a1, 'a2 list * 'a2) m **)

let mixed_multipath n vocabulary p q u lower lambda l more =
  bind (first_or_highest n vocabulary q lower lambda l more) (fun x ->
    block n vocabulary p
      (rows_of n q
        (mixed_mass n vocabulary q lower lambda (Stdlib.Int.succ more))) u l x)

(** val several : int -> ('a1, 'a2) m -> ('a1, 'a2 list) m **)

let rec several k m0 =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> ret [])
    (fun k' ->
    bind m0 (fun x -> bind (several k' m0) (fun xs -> ret (x :: xs))))
    k

(** val next_tokens :
    Equality.coq_type -> Equality.sort list list -> Equality.sort list **)

let next_tokens _ paths =
  pmap ohead paths

(** val agree :
    Equality.coq_type -> Equality.sort -> Equality.sort list list ->
    Equality.sort list list **)

let agree t y paths =
  map behead
    (filter (fun x ->
      eq_op (option_eqType t) (Obj.magic ohead x) (Obj.magic (Some y))) paths)

(** val selection :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> (Equality.sort list -> Equality.sort list ->
    ('a1, Equality.sort) m) -> int -> Equality.sort list -> Equality.sort
    list list -> ('a1, Equality.sort list * Equality.sort) m **)

let rec selection n t vocabulary p choose n0 c paths =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> bind (draw n vocabulary (p c)) (fun y -> ret (c, y)))
    (fun n' ->
    bind (choose c (next_tokens t paths)) (fun y ->
      if nilp (agree t y paths)
      then ret (c, y)
      else selection n t vocabulary p choose n' (rcons c y) (agree t y paths)))
    n0

(** val draft_selection :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> ('a1, Equality.sort) model -> (Equality.sort list
    -> Equality.sort list -> ('a1, Equality.sort) m) -> int -> int -> ('a1,
    Equality.sort list * Equality.sort) m **)

let draft_selection n t vocabulary p q choose l k =
  bind (several k (walk n vocabulary q l [])) (fun paths ->
    selection n t vocabulary p choose l [] paths)

(** val naive_sampling :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> int -> Equality.sort list list -> ('a1,
    Equality.sort list * Equality.sort) m **)

let naive_sampling n t vocabulary p l paths =
  selection n t vocabulary p (fun c _ -> draw n vocabulary (p c)) l [] paths

type 't tree =
| Node of 't * 't tree list

(** val root : 'a1 tree -> 'a1 **)

let root = function
| Node (t, _) -> t

(** val children : 'a1 tree -> 'a1 tree list **)

let children = function
| Node (_, xs) -> xs

(** val draft_tree :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> int list -> Equality.sort list -> ('a1,
    Equality.sort tree list) m **)

let rec draft_tree n t vocabulary q ks c =
  match ks with
  | [] -> ret []
  | k :: ks' ->
    several k
      (bind (draw n vocabulary (q c)) (fun t0 ->
        bind (draft_tree n t vocabulary q ks' (rcons c t0)) (fun xs ->
          ret (Node (t0, xs)))))

(** val behind_token :
    Equality.coq_type -> Equality.sort -> Equality.sort tree list ->
    Equality.sort tree list **)

let behind_token t y drafts =
  flatten (map children (filter (fun x -> eq_op t (root x) y) drafts))

(** val tree_selection :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> (Equality.sort list -> Equality.sort list ->
    ('a1, Equality.sort) m) -> int -> Equality.sort list -> Equality.sort
    tree list -> ('a1, Equality.sort list * Equality.sort) m **)

let rec tree_selection n t vocabulary p choose n0 c drafts =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> bind (draw n vocabulary (p c)) (fun y -> ret (c, y)))
    (fun n' ->
    match drafts with
    | [] -> bind (draw n vocabulary (p c)) (fun y -> ret (c, y))
    | _ :: _ ->
      bind (choose c (map root drafts)) (fun y ->
        if in_mem y (mem (seq_predType t) (Obj.magic map root drafts))
        then tree_selection n t vocabulary p choose n' (rcons c y)
               (behind_token t y drafts)
        else ret (c, y)))
    n0

(** val tree_verification :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> ('a1, Equality.sort) model -> (Equality.sort list
    -> Equality.sort list -> ('a1, Equality.sort) m) -> int -> int list ->
    ('a1, Equality.sort list * Equality.sort) m **)

let tree_verification n t vocabulary p q choose l ks =
  bind (draft_tree n t vocabulary q ks []) (fun drafts ->
    tree_selection n t vocabulary p choose l [] drafts)

(** val recursive_tests :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) convention -> ('a2 -> 'a1) -> 'a2
    list -> ('a2 -> 'a1) -> ('a1, 'a2) m **)

let rec recursive_tests n vocabulary u q x r =
  match x with
  | [] -> draw n vocabulary r
  | x1 :: others ->
    bind (coin n (n.min (ratio n (fun _ -> r) (fun _ -> q) u [] x1) n.one))
      (fun accepted ->
      if accepted
      then ret x1
      else recursive_tests n vocabulary u q others
             (residual n vocabulary (fun _ -> r) (fun _ -> q) u [] n.one))

(** val kseq_accept :
    'a1 numbers -> ('a2 -> 'a1) -> ('a2 -> 'a1) -> 'a1 -> ('a2 -> 'a1) -> 'a2
    -> 'a1 **)

let kseq_accept n p q rho ratio1 x =
  n.min
    (if n.equal (q x) n.zero then ratio1 x else n.div (p x) (n.mul rho (q x)))
    n.one

(** val beta :
    'a1 numbers -> 'a2 list -> ('a2 -> 'a1) -> ('a2 -> 'a1) -> 'a1 -> 'a1 **)

let beta n vocabulary p q rho =
  sum n vocabulary (fun x -> n.min (q x) (n.div (p x) rho))

(** val missed :
    'a1 numbers -> 'a2 list -> ('a2 -> 'a1) -> ('a2 -> 'a1) -> 'a1 -> int ->
    'a1 **)

let rec missed n vocabulary p q rho k =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> n.one)
    (fun k' ->
    n.mul (n.subtract n.one (beta n vocabulary p q rho))
      (missed n vocabulary p q rho k'))
    k

(** val kseq_residual :
    'a1 numbers -> 'a2 list -> ('a2 -> 'a1) -> ('a2 -> 'a1) -> 'a1 -> ('a2 ->
    'a1) -> int -> 'a2 -> 'a1 **)

let kseq_residual n vocabulary p q rho res1 k x =
  if n.equal (missed n vocabulary p q rho k) n.zero
  then res1 x
  else n.div
         (n.subtract (p x)
           (n.mul (n.min (q x) (n.div (p x) rho))
             (n.div (n.subtract n.one (missed n vocabulary p q rho k))
               (beta n vocabulary p q rho)))) (missed n vocabulary p q rho k)

(** val kseq_tests :
    'a1 numbers -> 'a2 list -> ('a2 -> 'a1) -> ('a2 -> 'a1) -> 'a1 -> ('a2 ->
    'a1) -> ('a2 -> 'a1) -> int -> 'a2 list -> ('a1, 'a2) m **)

let rec kseq_tests n vocabulary p q rho ratio1 res1 k = function
| [] -> draw n vocabulary (kseq_residual n vocabulary p q rho res1 k)
| x :: others ->
  bind (coin n (kseq_accept n p q rho ratio1 x)) (fun accepted ->
    if accepted
    then ret x
    else kseq_tests n vocabulary p q rho ratio1 res1 k others)

(** val drafts_prob : 'a1 numbers -> ('a2 -> 'a1) -> 'a2 list -> 'a1 **)

let drafts_prob n q x =
  path_prob n (fun _ -> q) [] x

(** val otm_row :
    'a1 numbers -> ('a2 -> 'a1) -> ('a2 list -> 'a2 -> 'a1) -> ('a2 -> 'a1)
    -> 'a2 list -> 'a2 -> 'a1 **)

let otm_row n q plan res1 x y =
  if n.equal (drafts_prob n q x) n.zero
  then res1 y
  else n.div (plan x y) (drafts_prob n q x)

(** val otm_choose :
    'a1 numbers -> 'a2 list -> ('a2 -> 'a1) -> ('a2 list -> 'a2 -> 'a1) ->
    ('a2 -> 'a1) -> 'a2 list -> ('a1, 'a2) m **)

let otm_choose n vocabulary q plan res1 x =
  draw n vocabulary (otm_row n q plan res1 x)

(** val greedy_weight :
    'a1 numbers -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1, 'a2)
    convention -> 'a2 list -> 'a1 -> 'a2 -> 'a1 **)

let greedy_weight n p q u c w t =
  n.mul w (ratio n p q u c t)

(** val total_loss :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> 'a2
    list -> 'a1 -> 'a1 **)

let total_loss n vocabulary p q c w =
  sum n vocabulary (fun t ->
    n.max (n.subtract (q c t) (n.mul w (p c t))) n.zero)

(** val greedy_accept :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> 'a2 list -> 'a1 -> 'a1 **)

let greedy_accept n vocabulary p q u c w =
  let gain0 = total_gain n vocabulary p q c w in
  let loss = total_loss n vocabulary p q c w in
  if n.equal loss n.zero
  then if n.equal gain0 n.zero then u.h0 c else n.one
  else n.min (n.div gain0 loss) n.one

(** val greedy_block_loop :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> 'a2 list -> 'a2 list -> 'a1 -> ('a2 list * 'a1) ->
    ('a1, 'a2 list * 'a1) m **)

let rec greedy_block_loop n vocabulary p q u c rest w best =
  match rest with
  | [] -> ret best
  | t :: rest' ->
    let c' = rcons c t in
    let w' = greedy_weight n p q u c w t in
    let h =
      match rest' with
      | [] -> n.min w' n.one
      | _ :: _ -> greedy_accept n vocabulary p q u c' w'
    in
    bind (coin n h) (fun accepted ->
      greedy_block_loop n vocabulary p q u c' rest' w'
        (if accepted then (c', w') else best))

(** val greedy_block :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> int -> 'a2 list -> ('a1, 'a2 list * 'a2) m **)

let greedy_block n vocabulary p q u l x =
  bind2 (greedy_block_loop n vocabulary p q u [] x n.one ([], n.one))
    (fun s w ->
    bind (correction n vocabulary p q u l s w) (fun y -> ret (s, y)))

(** val left_over :
    'a1 numbers -> Equality.coq_type -> ('a1, Equality.sort) model -> ('a1,
    Equality.sort) model -> int -> Equality.sort list -> 'a1 **)

let left_over n _ p q k a =
  if n.equal (path_prob n p [] a) n.zero
  then n.zero
  else n.mul (path_prob n p [] a)
         (power n
           (n.subtract n.one
             (n.min (n.div (path_prob n q [] a) (path_prob n p [] a)) n.one))
           k)

(** val sum_left :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> ('a1, Equality.sort) model -> int ->
    Equality.sort list -> 'a1 **)

let sum_left n t vocabulary p q k a =
  sum n vocabulary (fun t0 -> left_over n t p q k (rcons a t0))

(** val any_draft :
    'a1 numbers -> Equality.coq_type -> ('a1, Equality.sort) model -> int ->
    Equality.sort list -> 'a1 **)

let any_draft n _ q k a =
  n.subtract n.one (power n (n.subtract n.one (path_prob n q [] a)) k)

(** val gbv_accept :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> ('a1, Equality.sort) model -> ('a1,
    Equality.sort) convention -> int -> int -> Equality.sort list -> 'a1 **)

let gbv_accept n t vocabulary p q u l k a =
  let above =
    if eq_op nat_eqType (Obj.magic size a) (Obj.magic l)
    then n.subtract (path_prob n p [] a) (left_over n t p q k a)
    else n.subtract (sum_left n t vocabulary p q k a) (left_over n t p q k a)
  in
  let below =
    if eq_op nat_eqType (Obj.magic size a) (Obj.magic l)
    then any_draft n t q k a
    else n.add (n.subtract (any_draft n t q k a) (path_prob n p [] a))
           (sum_left n t vocabulary p q k a)
  in
  if n.equal below n.zero then u.h0 a else n.div above below

(** val gbv_residual :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> ('a1, Equality.sort) model -> ('a1,
    Equality.sort) convention -> int -> Equality.sort list -> Equality.sort
    -> 'a1 **)

let gbv_residual n t vocabulary p q u k a t0 =
  if n.equal (sum_left n t vocabulary p q k a) n.zero
  then u.res0 a t0
  else n.div (left_over n t p q k (rcons a t0))
         (sum_left n t vocabulary p q k a)

(** val gbv_prefixes :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> ('a1, Equality.sort) model -> ('a1,
    Equality.sort) convention -> int -> int -> int -> Equality.sort list ->
    Equality.sort list -> Equality.sort list -> Equality.sort list list ->
    ('a1, Equality.sort list * Equality.sort list list) m **)

let rec gbv_prefixes n t vocabulary p q u l k from c rest t0 h =
  match rest with
  | [] -> ret (t0, h)
  | y :: rest' ->
    let c' = rcons c y in
    if leq (size c') from
    then gbv_prefixes n t vocabulary p q u l k from c' rest' t0 h
    else bind (coin n (gbv_accept n t vocabulary p q u l k c'))
           (fun accepted ->
           if (&&) accepted
                (negb
                  (in_mem (Obj.magic c')
                    (mem (seq_predType (seq_eqType t)) (Obj.magic h))))
           then gbv_prefixes n t vocabulary p q u l k from c' rest' c' h
           else gbv_prefixes n t vocabulary p q u l k from c' rest' t0
                  (c' :: h))

(** val gbv_drafts :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> ('a1, Equality.sort) model -> ('a1,
    Equality.sort) convention -> int -> int -> Equality.sort list list ->
    Equality.sort list -> Equality.sort list list -> ('a1, Equality.sort
    list) m **)

let rec gbv_drafts n t vocabulary p q u l k drafts t0 h =
  match drafts with
  | [] -> ret t0
  | x :: others ->
    if eq_op nat_eqType (Obj.magic size t0) (Obj.magic l)
    then ret t0
    else bind2 (gbv_prefixes n t vocabulary p q u l k (size t0) [] x t0 h)
           (fun t' h' -> gbv_drafts n t vocabulary p q u l k others t' h')

(** val spectr_gbv :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> ('a1, Equality.sort) model -> ('a1,
    Equality.sort) convention -> int -> int -> ('a1, Equality.sort
    list * Equality.sort) m **)

let spectr_gbv n t vocabulary p q u l k =
  bind (several k (walk n vocabulary q l [])) (fun drafts ->
    bind (gbv_drafts n t vocabulary p q u l k drafts [] []) (fun t0 ->
      bind
        (draw n vocabulary
          (if eq_op nat_eqType (Obj.magic size t0) (Obj.magic l)
           then p t0
           else gbv_residual n t vocabulary p q u k t0)) (fun y ->
        ret (t0, y))))

(** val without :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) convention -> (Equality.sort -> 'a1) -> Equality.sort list
    -> Equality.sort -> 'a1 **)

let without n t vocabulary u q xs t0 =
  let kept = fun s ->
    if in_mem s (mem (seq_predType t) (Obj.magic xs)) then n.zero else q s
  in
  let total = sum n vocabulary kept in
  if n.equal total n.zero then u.res0 xs t0 else n.div (kept t0) total

(** val distinct_rejection :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) convention -> int -> (Equality.sort list -> Equality.sort
    -> 'a1) -> Equality.sort list -> (Equality.sort -> 'a1) -> ('a1,
    Equality.sort * bool) m **)

let rec distinct_rejection n t vocabulary u n0 row xs r =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> bind (draw n vocabulary r) (fun y -> ret (y, false)))
    (fun n' ->
    bind (draw n vocabulary (row xs)) (fun x ->
      bind
        (coin n (n.min (ratio n (fun _ -> r) (fun _ -> row xs) u [] x) n.one))
        (fun accepted ->
        if accepted
        then ret (x, true)
        else distinct_rejection n t vocabulary u n' row (rcons xs x)
               (residual n vocabulary (fun _ -> r) (fun _ -> row xs) u []
                 n.one))))
    n0

(** val distinct_tree :
    'a1 numbers -> Equality.coq_type -> Equality.sort list -> ('a1,
    Equality.sort) model -> ('a1, Equality.sort) model -> ('a1,
    Equality.sort) convention -> int list -> Equality.sort list -> ('a1,
    Equality.sort list * Equality.sort) m **)

let rec distinct_tree n t vocabulary p q u ks c =
  match ks with
  | [] -> bind (draw n vocabulary (p c)) (fun y -> ret (c, y))
  | k :: ks' ->
    bind2
      (distinct_rejection n t vocabulary u k (without n t vocabulary u (q c))
        [] (p c)) (fun y accepted ->
      if accepted
      then distinct_tree n t vocabulary p q u ks' (rcons c y)
      else ret (c, y))
